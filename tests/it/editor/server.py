"""A tool server that a script drives, by the Model Context Protocol of 2025. `server.py SCRIPT`.

The script has "tools", the steps of each call by the name of its tool in "calls", and the steps before the handshake in "start".
A step is {"text": TEXT} (the result), {"result": VALUE}, {"sh": COMMAND} (its output is the result), {"raw": TEXT} (a line as it is),
{"long": BYTES} (a line of this length), {"giant": BYTES} (a result of this length), {"lines": BYTES} (lines that are no messages), {"notes":
BYTES} (notifications), {"ask": COUNT} (requests of the server), {"stderr": BYTES}, {"stderr_forever": true}, {"say": TEXT} (on the
standard error), {"tools": LIST} (another list of tools, which is told), {"gate": PATH} (waits until the file exists), {"progress": [DONE, TOTAL, WORDS]}, {"until_cancelled": NAME} (waits for the message that cancels
the call, and writes a file of this name into the home), {"form": SCHEMA} (asks the person and waits for the reply), {"answers": true} (all
replies are the result), {"hang": true} or {"die": STATUS}. The script may have "resources" and "prompts": their lists, and "texts": the text
of each resource by its address, and of each prompt by its name, with the arguments in the place of {}. It may have "templates", and
"completions": the values of each argument by its prompt or template, then by its name; "$NAME" stands for the value of another argument.
"hangs" lists the methods that it never answers.
"""

import json
import os
import subprocess
import sys
import threading
import time


def send(message: dict) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def run(command: str) -> str:
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    return f"{done.stdout}status {done.returncode}"


def flood() -> None:
    while True:
        os.write(2, b"e" * 4096)


def write_out(start: str, piece: str, end: str, length: int) -> None:
    """Write so many bytes, in one text between two others, or as many texts if there is nothing between them."""
    out, large = sys.stdout.buffer, (piece * (1 + (1 << 20) // len(piece))).encode()
    out.write(start.encode())
    for _ in range(length // len(large)):
        out.write(large)
    out.write(f"{end}\n".encode())
    out.flush()


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
            case {"giant": length}:
                message = json.dumps({"jsonrpc": "2.0", "id": number, "result": {"content": [{"type": "text", "text": "TEXT"}]}})
                start, end = message.split("TEXT")
                write_out(start, "x", end, length)
            case {"lines": length}:
                write_out("", "no message\n", "", length)
            case {"notes": length}:
                note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1_000}}
                write_out("", json.dumps(note) + "\n", "", length)
            case {"ask": count}:
                for at in range(count):
                    send({"id": f"ask {at}", "method": "elicitation/create", "params": {"message": "Password?", "requestedSchema": {"type": "object", "properties": {}}}})
            case {"stderr": length}:
                for _ in range(length // 100_000):
                    print(("e" * 999 + "\n") * 100, end="", file=sys.stderr, flush=True)
            case {"stderr_forever": _}:
                threading.Thread(target=flood, daemon=True).start()
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
            case {"form": schema}:
                params = {"message": "Set it up.", "requestedSchema": schema}
                send({"id": "form", "method": "elicitation/create", "params": params})
                while (reply := json.loads(sys.stdin.readline())).get("id") != "form":
                    pass
                answers.append(json.dumps(reply["result"]))
            case {"answers": _}:
                send({"id": number, "result": {"content": [{"type": "text", "text": "\n".join(answers)}]}})
            case {"hang": _}:
                while sys.stdin.readline():
                    pass
            case {"die": status}:
                os._exit(status)
            case _:
                raise ValueError(step)


def answer(message: dict) -> None:
    number = message.get("id")
    if message.get("method") in script.get("hangs", []):
        return
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "scripted", "version": "1"}
            capabilities = {"tools": {"listChanged": True}} | {name: {} for name in ("resources", "prompts", "completions") if name in script}
            send({"id": number, "result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": server}})
        case "tools/list":
            send({"id": number, "result": {"tools": tools}})
        case "tools/call":
            name = message["params"]["name"]
            token = message["params"].get("_meta", {}).get("progressToken")
            carry_out(script["calls"].get(name, [{"error": f"unknown tool {name}"}]), number, token)
        case "resources/list":
            send({"id": number, "result": {"resources": script["resources"]}})
        case "resources/templates/list" if "templates" in script:
            send({"id": number, "result": {"resourceTemplates": script["templates"]}})
        case "completion/complete":
            params = message["params"]
            of, argument = params["ref"].get("name") or params["ref"]["uri"], params["argument"]
            others = params.get("context", {}).get("arguments", {})
            values = [others.get(value[1:], "") if value.startswith("$") else value for value in script["completions"][of][argument["name"]]]
            send({"id": number, "result": {"completion": {"values": [it for it in values if it.startswith(argument["value"])]}}})
        case "prompts/list":
            send({"id": number, "result": {"prompts": script["prompts"]}})
        case "resources/read":
            uri = message["params"]["uri"]
            if uri in script["texts"]:
                send({"id": number, "result": {"contents": [{"uri": uri, "text": script["texts"][uri]}]}})
            else:
                send({"id": number, "error": {"code": -32002, "message": "no such resource"}})
        case "prompts/get":
            params = message["params"]
            text = script["texts"][params["name"]].replace("{}", json.dumps(params.get("arguments")))
            content = {"type": "text", "text": text}
            send({"id": number, "result": {"messages": [{"role": "user", "content": content}]}})
        case None | "notifications/initialized" | "notifications/cancelled":
            pass
        case method:
            send({"id": number, "error": {"code": -32601, "message": f"no method {method}"}})


with open(sys.argv[1], encoding="utf-8") as file:
    script = json.load(file)
tools = script["tools"]
answers: list[str] = []
carry_out(script.get("start", []), None)
for line in sys.stdin:
    answer(json.loads(line))
