// Package httpapi is what an agent answers over HTTP: whether it is alive (/healthz), whether it can do work (/readyz), and
// its metrics in Prometheus' form (/metrics). It serves reads only; acts over HTTP come with their own issue and need a
// token. It knows nothing of the work: what it tells is handed to it as functions.
package httpapi
