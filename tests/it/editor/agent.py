"""An agent that a script drives, by the Agent Client Protocol. `agent.py SCRIPT`: the script has the steps for each prompt by its text.

A step is {"update": ...}, {"ask": ...} (a request for permission), {"sh": COMMAND} (its output becomes a message), {"raw": TEXT},
{"until": FILE} (waits until there is such a file), {"flood": JSON} (calls with very large inputs of this value),
{"await": "cancel"}, {"stop": REASON}, {"error": MESSAGE} or {"die": STATUS}.
"""

import json
import os
import subprocess
import sys
import time

SESSION = "s1"


def send(message: dict) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive() -> dict:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def update(what: dict) -> None:
    send({"method": "session/update", "params": {"sessionId": SESSION, "update": what}})


def say(text: str) -> None:
    update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def ask(params: dict) -> None:
    send({"id": "ask", "method": "session/request_permission", "params": {"sessionId": SESSION, **params}})
    while (answer := receive()).get("id") != "ask":
        pass
    outcome = answer["result"]["outcome"]
    say(f"answered: {outcome.get('optionId', outcome['outcome'])}\n")


def run(command: str) -> None:
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    say(f"{done.stdout}status {done.returncode}\n")


def prompt(steps: list[dict]) -> dict:
    for step in steps:
        match step:
            case {"update": what}:
                update(what)
            case {"ask": params}:
                ask(params)
            case {"sh": command}:
                run(command)
            case {"until": file}:
                while not os.path.exists(file):
                    time.sleep(0.02)
            case {"flood": piece}:
                for number in range(1_000):
                    value = json.loads("[" + piece * 100_000 + "0]")
                    update({"sessionUpdate": "tool_call", "toolCallId": str(number), "title": "x", "rawInput": value})
            case {"raw": text}:
                sys.stdout.write(text)
                sys.stdout.flush()
            case {"await": "cancel"}:
                while receive().get("method") != "session/cancel":
                    pass
                return {"result": {"stopReason": "cancelled"}}
            case {"stop": reason}:
                return {"result": {"stopReason": reason}}
            case {"error": message}:
                return {"error": {"code": -32603, "message": message}}
            case {"die": status}:
                sys.stderr.write("it hurts\n")
                sys.exit(status)
    return {"result": {"stopReason": "end_turn"}}


def main() -> None:
    with open(sys.argv[1], encoding="utf8") as file:
        script = json.load(file)
    while True:
        request = receive()
        match request.get("method"):
            case "initialize":
                reply = {"result": {"protocolVersion": 1, "agentCapabilities": {}}}
            case "session/new":
                reply = {"result": {"sessionId": SESSION}}
            case "session/prompt":
                blocks = [block["text"] for block in request["params"]["prompt"]]
                text = next(block for block in blocks if not block.startswith("<"))
                reply = prompt(script.get(text, [{"error": f"no steps for {text}"}]))
            case _:
                continue
        send({"id": request["id"], **reply})


main()
