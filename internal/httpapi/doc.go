// Package httpapi serves an agent's HTTP endpoints: liveness (/healthz), readiness (/readyz), metrics in Prometheus'
// text format (/metrics), and the API for experiments, which internal/abhttp implements. Acts on jobs over HTTP are not
// supported. It depends on no other part of the agent: its data comes from functions that the caller passes in.
package httpapi
