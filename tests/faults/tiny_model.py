"""Write a language model of a few thousand random weights in llama.cpp's format.

Run: python tests/faults/tiny_model.py FILE   (needs gguf, which comes with llama-cpp-python's tools)

It knows single characters and bytes, and says nothing that means anything; it is a model to every server all the same.
"""

import sys

import gguf
import numpy as np

WIDTH, HEADS, LAYERS, FEED, CONTEXT = 32, 4, 1, 64, 32_768


def main(path: str) -> None:
    """Write the file."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *([gguf.TokenType.BYTE] * 256)]
    letters = ["▁", *(chr(code) for code in range(33, 127))]
    tokens += letters
    kinds += [gguf.TokenType.NORMAL] * len(letters)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    rng = np.random.default_rng(0)

    def matrix(name: str, rows: int, columns: int) -> None:
        writer.add_tensor(name, rng.normal(0, 0.3, (rows, columns)).astype(np.float32))

    matrix("token_embd.weight", len(tokens), WIDTH)
    matrix("output.weight", len(tokens), WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        matrix(f"blk.{layer}.ffn_gate.weight", FEED, WIDTH)
        matrix(f"blk.{layer}.ffn_up.weight", FEED, WIDTH)
        matrix(f"blk.{layer}.ffn_down.weight", WIDTH, FEED)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1])
