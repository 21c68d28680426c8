# What one does with a checkout. `make` alone lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

INTEROP := tests/interop
# One profile for all but a first look, what ships and what is measured.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
VENV := $(TARGET)/interop/venv
SDK_VENV := $(TARGET)/sdk/venv
# What only some operators need is built for tests, and not for a first look.
FEATURES := --features carillon/aws,carillon/kubernetes,carillon/postgres,carillon/nats,carillon/redis,carillon/modules
export CARILLON := $(TARGET)/debug/carillon
# What is packed, and for which machine; another binary by BINARY=…
BINARY := $(TARGET)/release/carillon
ARCH ?= $(shell dpkg --print-architecture 2>/dev/null || echo amd64)
VERSION ?= $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml | head -1)
PACKAGES := $(TARGET)/packages
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct))
# Built as one of the workspace, it shares its dependencies with the tests: alone it would have other features.
XTASK := cargo build --quiet --workspace --bin xtask $(FEATURES) && $(TARGET)/debug/xtask

.PHONY: help run cell install bench test test-rust test-sim test-counts test-kills test-postgres test-interop test-python test-node test-sdk fuzz build tools lint fmt-check clippy doc tidy \
	release-binary packages package image lint-python typos clean-interop

help: ## This list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | column -t -s $$'\t'

run: ## A node with a few clients, to look at; quick to build, not to measure
	cargo run --profile look -p carillon -- demo

cell: ## Three nodes with a PostgreSQL and a NATS on this machine; one of them is killed
	cargo run --profile look -p carillon --features nats,postgres -- demo --cell

install: ## The optimised binary, into ~/.cargo/bin
	cargo install --locked --path crates/carillon

test: test-rust test-sim test-counts test-kills test-postgres test-interop test-sdk ## Every test; fetches what the tests need

test-rust: tools ## Unit tests, conversations, simulations
	cargo test --workspace --no-fail-fast $(FEATURES)

# The same programs everywhere; whoever changes the core runs others: CONTRIBUTING.md, Simulation.
test-sim: ## Random programs against simulated nodes
	$(XTASK) sim --from 1 --programs 40000

test-counts: tools ## Instructions a login and a delivery cost, under valgrind
	$(XTASK) instructions $(FEATURES)

test-kills: build tools ## A node under load that is killed, restarted, upgraded, cut off; for longer: see tests/interop/README.md
	cd $(INTEROP) && $(VENV)/bin/python -m kills

test-postgres: build tools ## A choice of the interop tests and of the campaign with the store on PostgreSQL; all of them: STORE=postgresql
	cd $(INTEROP) && STORE=postgresql $(VENV)/bin/pytest test_archive.py test_invitations.py test_inbox.py
	cd $(INTEROP) && STORE=postgresql $(VENV)/bin/python -m kills --rounds 2 --fault database-crash

test-interop: test-python test-node ## Other people's clients against the real server

test-python: build tools ## slixmpp, raw sockets, the HTTP API
	cd $(INTEROP) && $(VENV)/bin/pytest -m alone
	cd $(INTEROP) && $(VENV)/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not alone"

test-node: build tools ## xmpp.js over WebSocket, the console in a browser
	cd $(INTEROP) && node --test --test-concurrency=2 --test-reporter=spec js/*.test.mjs

release-binary: ## The binary that is packed, optimised, with everything that some operators need
	cargo build --locked --release --package carillon --features aws,kubernetes,postgres,nats,redis,modules

packages: package image ## The Debian package and the image of a binary that was built (make release-binary)

package image: export VERSION := $(VERSION)
package image: export SOURCE_DATE_EPOCH = $(EPOCH)
package: ## The Debian package, into target/packages
	deploy/debian/build $(BINARY) $(PACKAGES)

image: ## The image as an OCI archive, without a container engine, into target/packages
	rm -rf $(PACKAGES)/rootfs
	deploy/container/rootfs $(BINARY) $(PACKAGES)/rootfs
	deploy/container/image $(PACKAGES)/rootfs $(PACKAGES)/carillon_$(VERSION)_$(ARCH).oci.tar --arch $(ARCH) --version $(VERSION) \
		--revision $$(git rev-parse HEAD)
	cp $(PACKAGES)/rootfs/usr/share/doc/carillon/sbom.cdx.json $(PACKAGES)/carillon_$(VERSION)_$(ARCH).cdx.json
	rm -rf $(PACKAGES)/rootfs

test-sdk: build tools ## The SDKs: their packages and their tests, with the real server
	bash sdk/setup $(SDK_VENV)
	cd sdk/tests && $(SDK_VENV)/bin/pytest

fuzz: ## Each fuzz target for ten seconds
	fuzz/run

build:
	cargo build --workspace --bin carillon $(FEATURES)

tools:
	bash $(INTEROP)/setup $(VENV)

bench: ## Carillon beside the floor, ejabberd and Prosody, three rounds; wants a quiet machine
	bench/compare
	bench/own
	bench/chat
	bench/rooms
	bench/results

lint: fmt-check clippy doc tidy lint-python typos ## Everything that looks at the code without running it

fmt-check:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets $(FEATURES) -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps $(FEATURES)

tidy: ## The rules that neither the compiler nor clippy knows
	$(XTASK) tidy
	$(XTASK) coverage --check
	$(XTASK) licences
	$(XTASK) unified
	$(XTASK) purity $(FEATURES)

lint-python: tools
	$(VENV)/bin/ruff check --quiet --config $(INTEROP)/ruff.toml $(INTEROP) bench/results bench/cell bench/killed bench/drain bench/fill bench/greed bench/attacks bench/flame bench/lossy bench/timeline docs/pictures/make deploy/sbom deploy/container/image sdk
	$(VENV)/bin/ruff format --quiet --check --config $(INTEROP)/ruff.toml $(INTEROP) bench/results bench/cell bench/killed bench/drain bench/fill bench/greed bench/attacks bench/flame bench/lossy bench/timeline docs/pictures/make deploy/sbom deploy/container/image sdk

typos: tools ## Spelling, everywhere
	$(VENV)/bin/typos --format brief

clean-interop: ## Forgets what the interop tests installed
	rm -rf $(VENV) $(INTEROP)/node_modules
