"""Writes the decoder of `bench_decoding` as `litert-torch` makes it, with random weights.

    PYTHON -P tools/litert_torch_decoder.py SIZES LENGTH CAPACITY FILE

PYTHON is that of an environment with litert-torch, which imports nothing of this project. SIZES is
JSON with the attributes of `harnesses.models.decoder_layers.Decoder`. The model has the signature
"step", for LENGTH tokens.
"""

import json
import sys

import litert_torch
import torch
from litert_torch.generative.examples.qwen import qwen3
from litert_torch.generative.layers import kv_cache
from litert_torch.generative.utilities import converter, export_config


def main(sizes: dict, length: int, capacity: int, path: str) -> None:
    """Writes the file."""
    config = qwen3.get_fake_model_config()
    config.vocab_size, config.num_layers = sizes["vocabulary"], sizes["layers"]
    config.embedding_dim, config.max_seq_len = sizes["features"], capacity
    config.lm_head_share_weight_with_embedding = False
    block = config.block_config(0)
    block.ff_config.intermediate_size = sizes["hidden"]
    attention = block.attn_config
    attention.num_heads, attention.num_query_groups = sizes["heads"], sizes["key_heads"]
    attention.head_dim = sizes["head_features"]
    model = qwen3.Qwen3(config).eval()
    layout = kv_cache.KV_LAYOUT_TRANSPOSED
    options = export_config.ExportConfig(
        output_logits_on_prefill=False, kvcache_layout=layout, mask_as_input=True
    )
    inputs = {
        "tokens": torch.full((1, length), 0, dtype=torch.int),
        "input_pos": torch.arange(0, length, dtype=torch.int),
        "mask": torch.zeros((1, 1, length, capacity), dtype=torch.float32),
        "kv_cache": kv_cache.KVCache.from_model_config(capacity, config, kv_layout=layout),
    }
    module = converter.ExportableModule(model, export_config=options).eval()
    litert_torch.signature("step", module, sample_kwargs=inputs).convert().export(path)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
