.DEFAULT_GOAL := help
# The tests that generate their input.
GENERATED := bash:: policy::verdicts::no_text sandbox::forced transcript::repair text:: no_edit_breaks remote::message secrets:: \
	editor::random_keys editor::random_edits cli::message_fuzz
# The tests that kill, cut off and fill up.
CHAOS := cli::message editor::surroundings editor::backend editor::drill editor::killed_edits \
	editor::quit editor::turns exec::faults exec::watchdog exec::leftovers sandbox::bombs
# Neovim logs to the state directory of the person otherwise.
export NVIM_LOG_FILE := /dev/null
.PHONY: help demo record test test-agents fuzz chaos bench lint format build clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Try co in a copy of a small project, with a model that runs here
	@python3 scripts/demo.py

record: ## Record the sessions of docs/recordings; takes tmux
	@"$$(python3 scripts/tools.py rich)" scripts/record.py

test: ## Run every test: the set-up, the backend, Lua, and all of it together
	@bash scripts/test.sh

test-agents: ## Run real agents and tool servers in co, offline (by npm and pip; no part of `make test`)
	@python3 scripts/test_agents.py

fuzz: ## Run the tests with generated input, with more of it (CASES=40000)
	CO_TEST_CASES=$(or $(CASES),40000) PROPTEST_CASES=$(or $(CASES),40000) cargo test --workspace --locked --no-fail-fast -- $(GENERATED)
	CO_TEST_CASES=$(or $(CASES),40000) "$$(python3 scripts/tools.py nvim)" --headless --clean -l tests/lua/run.lua 'any text in the fields'
	CO_TEST_CASES=$(or $(CASES),40000) "$$(python3 scripts/tools.py nvim)" --headless --clean -l tests/lua/run.lua generated

chaos: ## Kill, cut off and fill up all that co uses, again and again (ROUNDS=3)
	@bash scripts/chaos.sh $(or $(ROUNDS),3) $(CHAOS)

bench: ## Measure how fast it is, beside the least it could take (docs/BENCHMARKS.md)
	CO_TEST_NVIM="$$(python3 scripts/tools.py nvim)" cargo bench --locked --bench exec --bench sandbox --bench policy --bench checkpoint --bench edits --bench search --bench editor

lint: ## Check formats, lints, types, documentation and spelling
	@bash scripts/lint.sh

format: ## Mend the format of Rust and Lua
	@bash scripts/lint.sh --format

build: ## Build the backend
	cargo build --release --locked

clean: ## Remove what was built and installed in the checkout
	cargo clean
	rm -rf .tools
