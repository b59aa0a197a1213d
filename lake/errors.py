"""What can go wrong, and who can mend it.

LakeError
├── UsageError            the caller: wrong arguments, nothing readable (exit 2)
│   ├── FormatError       a file of no known format, or not of the format named
│   ├── SourceError       root, options or place differ from what the source recorded
│   ├── QueryError        SQL that is refused or does not run
│   ├── NotFoundError     no such release, tag, table, record or example
│   └── MissingExtraError an optional dependency is not installed; names the pip command
├── GateError             a check said no (exit 1)
│   ├── AuditError        a contract, a dbt test or a Soda check failed
│   ├── ContractError     data or files that do not match their contract
│   ├── StaleBuildError   what would be published is not what was built last, whole and without failure
│   └── ConflictError     another publisher was first
├── BusyError             others: their commits left no turn for ours; the caller runs it again (exit 2)
└── InternalError         ours: a promise of this package does not hold (exit 3)

Every message says what was found, what was expected and the next step.
"""

from __future__ import annotations


class LakeError(Exception):
    """Base of all errors that a user sees; `exit_code` is the command's exit status."""

    exit_code = 3


class UsageError(LakeError):
    """The call cannot be carried out as it stands."""

    exit_code = 2


class FormatError(UsageError):
    """A file is of no known format, or not of the one that was named."""


class SourceError(UsageError):
    """A landing disagrees with what its source recorded before."""


class QueryError(UsageError):
    """SQL that is refused or that does not run."""


class NotFoundError(UsageError):
    """No release, tag, table, record or example of that name."""


class MissingExtraError(UsageError):
    """An optional dependency is missing."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed; it comes with the extra '{extra}'. Run: pip install 'lakewright[{extra}]'"
        )


class GateError(LakeError):
    """A gate or an audit said no."""

    exit_code = 1


class AuditError(GateError):
    """A check on the built tables failed or was not evaluated."""


class ContractError(GateError):
    """Data or generated files do not match the contract."""


class StaleBuildError(GateError):
    """The workspace does not hold a whole build without failure of the present project."""


class ConflictError(GateError):
    """Somebody else published on the same parent first."""


class BusyError(LakeError):
    """Others committed to a table all the time; the same call may pass later."""

    exit_code = 2


class InternalError(LakeError):
    """A promise of this package does not hold."""
