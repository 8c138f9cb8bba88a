"""An agent that a script drives, by the Agent Client Protocol. `agent.py SCRIPT`: the script has the steps for each prompt by its text.

A step is {"update": ...}, {"of": SESSION, "update": ...} (of a sub-agent), {"ask": ...} (a request for permission), {"elicit": ...} (a
question to the person), {"notify": METHOD, "params": ...}, {"sh": COMMAND} (its output becomes a message), {"raw": TEXT}, {"until": FILE}
(waits until there is such a file), {"flood": JSON} (calls with very large inputs of this value), {"await": "cancel"}, {"await": METHOD}
(answers this request), {"tool": NAME, "arguments": {...}} (calls a tool of the client's server, and says the result), {"call": NAME, "arguments": {...}} (does
not wait for the result), {"relay": [IN, OUT]}
(starts that server with these files as its input and output), {"stop": REASON}, {"error": MESSAGE} or {"die": STATUS}.

A shell command has the variables of the client's server.

The script may also have `capabilities` and `session` (fields of the answers to `initialize` and `session/new`), `after` (the steps
after the answer to `session/new`), `load` (the steps of
`session/load`), `lost` (the error of `session/load` and `session/resume`), `sessions` (the pages of `session/list`), `methods` (the ways
to log in, without which there is no session), `login` (for each method the steps of `authenticate`), `on_change` (for changes of the
session: "die", "stay" as it is, or "wait" for a file), and `log` (a file that gets each message of the client).
"""

import itertools
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
    if "log" in script:
        with open(script["log"], "a", encoding="utf8") as file:
            file.write(line)
    return json.loads(line)


def update(what: dict, session: str = SESSION) -> None:
    send({"method": "session/update", "params": {"sessionId": session, "update": what}})


def say(text: str) -> None:
    update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def ask(params: dict) -> None:
    send({"id": "ask", "method": "session/request_permission", "params": {"sessionId": SESSION, **params}})
    while (answer := receive()).get("id") != "ask":
        pass
    outcome = answer["result"]["outcome"]
    say(f"answered: {outcome.get('optionId', outcome['outcome'])}\n")


def elicit(params: dict) -> None:
    send({"id": "elicit", "method": "elicitation/create", "params": {"sessionId": SESSION, **params}})
    while (answer := receive()).get("id") != "elicit":
        pass
    say(f"elicited: {json.dumps(answer['result'])}\n")


def change(request: dict) -> dict:
    """Changes the session as a request says, and returns the reply."""
    params = request["params"]
    match script.get("on_change"):
        case "die":
            sys.exit(1)
        case "stay":
            return {"result": {"configOptions": session["configOptions"]}}
        case "wait":
            with open("changing", "w", encoding="utf8"):
                pass
            while not os.path.exists("go"):
                time.sleep(0.02)
    if request["method"] == "session/set_mode":
        if params["modeId"] == "broken":
            return {"error": {"code": -32603, "message": "this mode is broken"}}
        return {"result": {}}
    for option in session["configOptions"]:
        if option["id"] == params["configId"]:
            option["currentValue"] = params["value"]
    return {"result": {"configOptions": session["configOptions"]}}


def server(**streams: object) -> subprocess.Popen[str]:
    """Start the tool server of the client."""
    [known] = servers
    command = [known["command"], *known["args"]]
    return subprocess.Popen(command, env=environment(), text=True, **streams)


def environment() -> dict[str, str]:
    return os.environ | {it["name"]: it["value"] for known in servers for it in known["env"]}


def send_server(message: dict) -> None:
    """Send a request to the tool server."""
    print(json.dumps({"jsonrpc": "2.0", **message}), file=running[0].stdin, flush=True)


def ask_server(message: dict) -> dict:
    """Send a request to the tool server, and return its answer."""
    send_server(message)
    while (answer := json.loads(running[0].stdout.readline())).get("id") != message["id"]:
        pass
    return answer


def call(name: str, arguments: dict) -> dict:
    """Return a request that calls a tool, for a server that is ready."""
    if not running:
        running.append(server(stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "scripted", "version": "1"}}
        ask_server({"id": 0, "method": "initialize", "params": params})
    return {"id": next(numbers), "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def call_tool(name: str, arguments: dict) -> None:
    answer = ask_server(call(name, arguments))
    if "error" in answer:
        say(f"refused: {answer['error']['message']}\n")
        return
    result = answer["result"]
    say(f"{'failed' if result['isError'] else 'result'}: {result['content'][0]['text']}\n")


def run(command: str) -> None:
    done = subprocess.run(["sh", "-c", command], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    say(f"{done.stdout}status {done.returncode}\n")


def prompt(steps: list[dict]) -> dict:
    for step in steps:
        match step:
            case {"of": child, "update": what}:
                update(what, child)
            case {"update": what}:
                update(what)
            case {"elicit": params}:
                elicit(params)
            case {"notify": method, "params": params}:
                send({"method": method, "params": params})
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
            case {"await": method}:
                while (request := receive()).get("method") != method:
                    pass
                send({"id": request["id"], **change(request)})
            case {"withdraw": id}:
                send({"method": "$/cancel_request", "params": {"requestId": id}})
            case {"request": method, "id": id, "params": params}:
                send({"id": id, "method": method, "params": params})
            case {"tool": name, "arguments": arguments}:
                call_tool(name, arguments)
            case {"call": name, "arguments": arguments}:
                send_server(call(name, arguments))
            case {"relay": [source, sink]}:
                server(stdin=open(source), stdout=open(sink, "w"))
            case {"stop": reason}:
                return {"result": {"stopReason": reason}}
            case {"error": message}:
                return {"error": {"code": -32603, "message": message}}
            case {"die": status}:
                sys.stderr.write("it hurts\n")
                sys.exit(status)
    return {"result": {"stopReason": "end_turn"}}


def main() -> None:
    # The login holds for this process, unless a file says that it was made in a terminal.
    logged_in = os.path.exists("logged-in")
    while True:
        request = receive()
        if "mcpServers" in request.get("params", {}):
            servers[:] = request["params"]["mcpServers"]
        match request.get("method"):
            case "initialize":
                reply = {
                    "result": {
                        "protocolVersion": 1,
                        "agentCapabilities": script.get("capabilities", {}),
                        "authMethods": script.get("methods", []),
                    }
                }
            case "authenticate":
                reply = prompt(script["login"][request["params"]["methodId"]])
                logged_in = "result" in reply
            case "session/new" | "session/load" | "session/resume" if "methods" in script and not logged_in:
                reply = {"error": {"code": -32000, "message": "Authentication required"}}
            case "session/list":
                pages = script["sessions"]
                page = int(request["params"].get("cursor", "0"))
                more = {"nextCursor": str(page + 1)} if page + 1 < len(pages) else {}
                reply = {"result": {"sessions": pages[page], **more}}
            case "session/new":
                reply = {"result": {"sessionId": SESSION, **session}}
            case "session/load" | "session/resume" if "lost" in script:
                reply = {"error": {"code": -32002, "message": script["lost"]}}
            case "session/load":
                prompt(script["load"])
                reply = {"result": session}
            case "session/resume":
                reply = {"result": session}
            case "session/set_mode" | "session/set_config_option":
                reply = change(request)
            case "session/prompt":
                blocks = [block["text"] for block in request["params"]["prompt"] if "text" in block]
                text = next(block for block in blocks if not block.startswith("<"))
                reply = prompt(script.get(text, [{"error": f"no steps for {text}"}]))
            case _:
                continue
        send({"id": request["id"], **reply})
        if request["method"] == "session/new":
            prompt(script.get("after", []))


with open(sys.argv[1], encoding="utf8") as script_file:
    script = json.load(script_file)
session = script.get("session", {})
numbers = itertools.count(1)
servers: list[dict] = []
running: list[subprocess.Popen[str]] = []
main()
