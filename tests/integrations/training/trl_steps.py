"""Train two steps with TRL's GRPOTrainer, and play every task through its environment class; print JSON.

The model is tiny and random. Its vocabulary has whole tool calls as tokens, and no other token is sampled, so that some
completions submit and others do not.
"""
# pyright: basic, reportMissingImports=false

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from finskillbench.edition import load_edition
from finskillbench.integrations.environments import EditionTasks, offered_tools
from finskillbench.integrations.trl_environment import environment_class

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tests.integrations.training.actions import actions_of


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def tokenizer_with(texts: list[str]) -> Any:
    """Return a tokenizer of bytes with further tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={letter: place for place, letter in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    made.add_tokens(texts)
    made.chat_template = qwen3_chat_template
    return made


source = EditionTasks(load_edition(Path(sys.argv[1])))
factory = environment_class(source, offered_tools("no_skill", source.edition.sub_tasks))
played: list[tuple[float, float]] = []
for seed in range(len(source.tasks)):
    one = factory()
    one.reset(seed=seed)
    for tool, arguments in actions_of(source, seed):
        (getattr(one, tool)(**arguments) if hasattr(one, tool) else one._call(tool, arguments))
    raw = one.get_reward()
    score = one._environment.reward
    played.append((score.score if score else -1.0, raw))

tasks = [task for task in source.tasks if task.startswith("pc_uncon")]
right = [call("submit_answer", answer=json.dumps(source.edition.truth(task).expected_output)) for task in tasks]
texts = [*right, call("submit_answer", answer="{}"), call("get_task_data", field="objective")]
tokenizer = tokenizer_with(texts)
sampled = {tokenizer.eos_token_id, *map(tokenizer.convert_tokens_to_ids, texts)}
torch.manual_seed(0)
size = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 16}
heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
special = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(tokenizer), **size, **heads, **special))
rewards: list[float] = []


def record(environments: list[Any], **row: Any) -> list[float]:
    rewards.extend(each.get_reward() for each in environments)
    return [0.0] * len(environments)


rows = [{"prompt": [{"role": "user", "content": ""}], "task": task} for task in tasks]
with TemporaryDirectory() as folder:
    arguments = GRPOConfig(
        folder, max_steps=2, per_device_train_batch_size=4, num_generations=4, max_completion_length=64,
        learning_rate=1e-2, report_to=[], use_cpu=True, save_strategy="no", max_tool_calling_iterations=3,
        generation_kwargs={"suppress_tokens": [i for i in range(len(tokenizer)) if i not in sampled]},
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model, processing_class=tokenizer, args=arguments, train_dataset=Dataset.from_list(rows),
        reward_funcs=[record], environment_factory=factory,
    )  # fmt: skip
    trainer.train()
print(json.dumps({"steps": trainer.state.global_step, "rewards": rewards, "played": played}))
