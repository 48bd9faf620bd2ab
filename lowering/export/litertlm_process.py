"""Runs a `.litertlm` file in LiteRT-LM, as a process of its own, whose crash ends nothing else.

    python litertlm_process.py FILE

Each line of its input is a request, and each line of its output the reply, in JSON. It imports
nothing of `lowering`, and so no TensorFlow.
"""

import json
import os
import sys


def main() -> None:
    """Answers requests until the input ends."""
    # The library may print; replies have a stream of their own.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import litert_lm

    engine = litert_lm.Engine(sys.argv[1], cache_dir=":nocache")
    greedy = litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=1.0, seed=0)

    def generate(prompt: str, count: int) -> str:
        """The text that the model generates greedily after a prompt."""
        with engine.create_session(
            apply_prompt_template=False, sampler_config=greedy, max_output_tokens=count
        ) as session:
            session.run_prefill([prompt])
            return session.run_decode().texts[0]

    def converse(text: str) -> str:
        """The first token of an answer to what a user says, put into the template."""
        with engine.create_conversation(sampler_config=greedy, max_output_tokens=1) as conversation:
            return str(conversation.send_message(text))

    functions = {
        "generate": generate,
        "converse": converse,
        "tokenize": engine.tokenize,
        "detokenize": engine.detokenize,
    }
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps(functions[name](**arguments)), file=replies, flush=True)


if __name__ == "__main__":
    main()
