# Two commands matter: make demo (a verdict on a real Slurm cluster on this machine) and make test (everything that checks).
CLUSTER ?= local
SLURM ?= 24.11
ACCOUNTING ?= --accounting
export HPC_VALIDATION_CLUSTER = $(CLUSTER)
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help demo workload test test-slow test-workloads test-matrix faults faults-preflight faults-fleet faults-reframe edge-processors clean-runs mutants molecule sanity \
	execution-environment lint pages bench fleet up down status lock clean

help:  ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

demo: .venv/ready up  ## Bring up the local cluster and validate it: category 1 on real Slurm
	ansible-playbook playbooks/validate_category1.yml -i inventories/local

workload: .venv/ready  ## Begin a workload of your own in ./workloads: NAME=triad, DEST=folder
	ansible-playbook playbooks/new_workload.yml -e 'name=$(NAME)' -e 'dest=$(or $(DEST),$(CURDIR)/workloads)'

test: .venv/ready  ## Everything that checks the project, integration on the real cluster included
	nox

test-slow: .venv/ready  ## Long waits, and what else make test leaves out of the integration tests
	nox -s slow

test-workloads: .venv/ready  ## The long workloads as a whole: the pretraining, its chain of jobs, its faults
	nox -s workloads

test-matrix: .venv/ready  ## Slurm releases, ansible-core releases, Pythons of the nodes; renews docs/support.md
	nox -s matrix

faults: .venv/ready  ## Every fault of tests/faults/faults.yml on live clusters, or of GROUP=name; renews docs/faults.md
	nox -s faults -- $(if $(GROUP),--faults-group $(GROUP))

faults-preflight: .venv/ready  ## Every fault of tests/faults/preflight.yml, and the run after each repair
	nox -s preflight_faults

faults-fleet: .venv/ready  ## Every fault of tests/faults/fleet.yml on a fleet of 20 nodes; renews docs/faults.md
	nox -s fleet_faults

faults-reframe: .venv/ready  ## What ReFrame answers to the same faults; renews docs/faults.md
	nox -s reframe

edge-processors: .venv/ready  ## Whether a run's model answers alike on emulated aarch64 and Haswell processors; BUNDLE=deploy.zip
	PYTHONPATH=collections python -m tests.edge.agreement $(BUNDLE)

clean-runs: .venv/ready  ## Thirty plays in a row where nothing is wrong: none may fail; renews docs/faults.md
	nox -s clean_runs

mutants: .venv/ready  ## Break the judge, and what it is fed by, in thousands of ways: the unit tests must notice; ONLY="_run _slurm"
	nox -s mutants -- $(foreach name,$(ONLY),'$(name)')

molecule: .venv/ready  ## The scenarios of extensions/molecule
	nox -s molecule

sanity: .venv/ready  ## ansible-test, antsibull-docs and galaxy-importer on a copy of the collection
	nox -s sanity

lint: .venv/ready  ## Linters and types only
	nox -s lint types

pages: .venv/ready  ## Renew the generated parts of docs/: the diagram of the packages, the reference of criteria and checks
	nox -s pages -- --write

bench: .venv/ready up  ## Speed and memory, as ratios against peers and limits
	nox -s bench

fleet: .venv/ready  ## A preflight of NODES=100 nodes with a slurmd each, measured, beside ReFrame on 50 of them
	nox -s fleet -- $(if $(NODES),--nodes $(NODES))

up: .venv/ready  ## The local cluster; CLUSTER=name SLURM=22.05|24.11|26.05 ACCOUNTING=--no-accounting
	tests/cluster/cluster up --name $(CLUSTER) --slurm $(SLURM) $(ACCOUNTING)

down:  ## Remove containers, networks and processes of this checkout's clusters; downloads stay
	tests/cluster/cluster down --all

status:  ## What the local cluster is and how to reach it
	tests/cluster/cluster status --name $(CLUSTER)

LOCK = uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'
EDGE = files/edge/requirements

lock: .venv/ready  ## Renew the locks of the tools, of the tests' MLflow server, and of the edge hosts
	$(LOCK) --python-version 3.11 -o tests/requirements.txt tests/requirements.in
	$(LOCK) --python-version 3.11 -o tests/sanity/requirements.txt tests/sanity/requirements.in
	$(LOCK) --python-version 3.11 -o tests/mlflow/mlflow.txt tests/mlflow/mlflow.in
	$(LOCK) --python-version 3.8 -o $(EDGE)/python38.txt $(EDGE)/python38.in
	$(LOCK) --python-version 3.10 -o $(EDGE)/python310.txt $(EDGE)/python310.in
	$(LOCK) --python-version 3.11 -o $(EDGE)/python311.txt $(EDGE)/python311.in

execution-environment: .venv/ready  ## Build the execution environment, where an image registry is reachable
	ansible-galaxy collection build --force
	ansible-builder build -f execution-environment.yml -c .cache/context -t hpc_validation

clean:  ## Remove the tools and caches of this checkout; results stay
	rm -rf .venv .nox .mypy_cache .ruff_cache .pytest_cache .hypothesis .ansible

.venv/ready: tests/requirements.txt tests/setup-controller
	tests/setup-controller
