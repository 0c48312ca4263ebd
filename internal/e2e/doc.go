// Package e2e tests the product as its users meet it: the real binary, as its own process, against a real PostgreSQL
// and both the in-process Kafka and a real broker. No test here uses the internals of the other packages.
package e2e
