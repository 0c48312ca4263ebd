// Package httpapi serves an agent's HTTP endpoints: liveness (/healthz), readiness (/readyz) and metrics in Prometheus'
// text format (/metrics). It serves reads only; acts over HTTP are not supported and would need a token. It depends on
// no other part of the agent: its data comes from functions that the caller passes in.
package httpapi
