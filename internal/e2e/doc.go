// Package e2e tests the product as its users meet it: the real binary, as its own process, against a real PostgreSQL
// and both the in-process Kafka and a real broker. Nothing here looks inside the other packages.
package e2e
