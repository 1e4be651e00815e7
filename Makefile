# Every target is one line; what takes more is a Go program under ci/.
export GOFLAGS := -buildvcs=false -trimpath
export CGO_ENABLED := 0
TASK := go run ./ci/tasks

help: ## list the targets
	@sed -n 's/^\([a-z0-9]*\):.*## /\1\t/p' Makefile | expand -t 12
build: ## build the dev cluster's programs and all images into .cluster/
	@$(TASK) build
check: ## the fast inner loop: format, vet, laws of the tree, unit tests
	@$(TASK) check
test: ## everything that CI runs: lint, generated code, unit tests with -race, the cluster, demo, end to end, nothing left
	@$(TASK) test
lint: ## go vet, staticcheck, govulncheck, the alerts by Prometheus' parser
	@$(TASK) lint
generate: ## write generated code again: CRDs, deepcopy, protobuf
	@go run ./ci/generate
up: ## start the dev cluster (NODES=2 for two nodes); its kubeconfig is .cluster/kubeconfig
	@$(TASK) up
down: ## stop the dev cluster and take away all that it left on the machine
	@$(TASK) down
e2e: ## end-to-end tests on the running dev cluster (RUN=regexp picks some)
	@$(TASK) e2e
bench: ## measure on the running dev cluster what docs/performance.md says
	@$(TASK) bench
demo: ## from nothing to a commit in Git that runs a VM, its console shown
	@$(TASK) demo
clean: ## down, and remove everything built
	@$(TASK) clean

.PHONY: help build check test lint generate up down e2e bench demo clean
