"""Reading a lake: SQL over releases and workspaces, traces of rows, differences of releases, output formats."""
