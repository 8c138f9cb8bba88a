"""A tool server that a script drives, by the Model Context Protocol of 2025. `server.py SCRIPT`.

The script has "tools", the steps of each call by the name of its tool in "calls", and the steps before the handshake in "start".
A step is {"text": TEXT} (the result), {"result": VALUE}, {"sh": COMMAND} (its output is the result), {"raw": TEXT} (a line as it is),
{"long": BYTES} (a line of this length), {"ask": COUNT} (requests of the server), {"stderr": BYTES}, {"say": TEXT} (on the
standard error), {"tools": LIST} (another list of tools, which is told), {"gate": PATH} (waits until the file exists), {"progress": [DONE, TOTAL, WORDS]}, {"until_cancelled": NAME} (waits for the message that cancels
the call, and writes a file of this name into the home), {"hang": true} or {"die": STATUS}.
"""

import json
import os
import subprocess
import sys
import time


def send(message: dict) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def run(command: str) -> str:
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    return f"{done.stdout}status {done.returncode}"


def carry_out(steps: list[dict], number: int | None, token: object = None) -> None:
    global tools
    for step in steps:
        match step:
            case {"text": text}:
                send({"id": number, "result": {"content": [{"type": "text", "text": text}]}})
            case {"result": value}:
                send({"id": number, "result": value})
            case {"error": text}:
                send({"id": number, "error": {"code": -32000, "message": text}})
            case {"sh": command}:
                send({"id": number, "result": {"content": [{"type": "text", "text": run(command)}]}})
            case {"raw": text}:
                print(text, flush=True)
            case {"long": length}:
                print("x" * length, flush=True)
            case {"ask": count}:
                for at in range(count):
                    send({"id": f"ask {at}", "method": "elicitation/create", "params": {"message": "Password?", "requestedSchema": {"type": "object", "properties": {}}}})
            case {"stderr": length}:
                for _ in range(length // 1_000):
                    print("e" * 999, file=sys.stderr, flush=True)
            case {"say": text}:
                print(text, file=sys.stderr, flush=True)
            case {"tools": new}:
                tools = new
                send({"method": "notifications/tools/list_changed"})
            case {"gate": path}:
                # A confined server cannot open a named pipe of the workspace.
                while not os.path.exists(path):
                    time.sleep(0.01)
            case {"progress": [done, total, words]}:
                send({"method": "notifications/progress", "params": {"progressToken": token, "progress": done, "total": total, "message": words}})
            case {"until_cancelled": name}:
                message = json.loads(sys.stdin.readline())
                assert message["method"] == "notifications/cancelled", message
                assert message["params"]["requestId"] == number, message
                with open(os.path.expanduser(f"~/{name}"), "w", encoding="utf-8"):
                    pass
            case {"hang": _}:
                while sys.stdin.readline():
                    pass
            case {"die": status}:
                os._exit(status)
            case _:
                raise ValueError(step)


def answer(message: dict) -> None:
    number = message.get("id")
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "scripted", "version": "1"}
            send({"id": number, "result": {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": server}})
        case "tools/list":
            send({"id": number, "result": {"tools": tools}})
        case "tools/call":
            name = message["params"]["name"]
            token = message["params"].get("_meta", {}).get("progressToken")
            carry_out(script["calls"].get(name, [{"error": f"unknown tool {name}"}]), number, token)
        case None | "notifications/initialized" | "notifications/cancelled":
            pass
        case method:
            send({"id": number, "error": {"code": -32601, "message": f"no method {method}"}})


with open(sys.argv[1], encoding="utf-8") as file:
    script = json.load(file)
tools = script["tools"]
carry_out(script.get("start", []), None)
for line in sys.stdin:
    answer(json.loads(line))
