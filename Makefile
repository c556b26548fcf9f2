# Two commands matter: make demo (a verdict on a real Slurm cluster on this machine) and make test (everything that checks).
CLUSTER ?= local
SLURM ?= 24.11
ACCOUNTING ?= --accounting
export HPC_VALIDATION_CLUSTER = $(CLUSTER)
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help demo test test-slow test-faults lint bench up down status lock clean

help:  ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

demo: .venv/ready up  ## Bring up the local cluster and validate it: MLOPS-1.1 on real Slurm
	ansible-playbook playbooks/validate_category1.yml -i inventories/local

test: .venv/ready  ## Everything that checks the project, integration on the real cluster included
	nox

test-slow: .venv/ready  ## The sweeps that make test leaves out: all Slurm releases, long waits
	nox -s slow

test-faults: .venv/ready  ## Every fault of tests/faults on live clusters, and the run after each repair
	nox -s faults

lint: .venv/ready  ## Linters and types only
	nox -s lint types

bench: .venv/ready up  ## Speed and memory, as ratios against peers and limits
	nox -s bench

up: .venv/ready  ## The local cluster; CLUSTER=name SLURM=22.05|24.11|26.05 ACCOUNTING=--no-accounting
	tests/cluster/cluster up --name $(CLUSTER) --slurm $(SLURM) $(ACCOUNTING)

down:  ## Remove containers, networks and processes of all local clusters; downloads stay
	tests/cluster/cluster down --all

status:  ## What the local cluster is and how to reach it
	tests/cluster/cluster status --name $(CLUSTER)

lock: .venv/ready  ## Renew the lock of the tools
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' -o tests/requirements.txt tests/requirements.in

clean:  ## Remove the tools and caches of this checkout; results stay
	rm -rf .venv .nox .mypy_cache .ruff_cache .pytest_cache .hypothesis .ansible

.venv/ready: tests/requirements.txt tests/setup-controller
	tests/setup-controller
