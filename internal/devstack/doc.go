// Package devstack runs everything kappactl needs on one machine, for trying and developing: an embedded Kafka broker,
// a PostgreSQL server started from installed binaries (package postgres), and sample data.
//
//	DIR/kappactl.yaml   settings that make every other command use this stack
//	DIR/dev.json        ports and folders kept over restarts
//	DIR/dev.lock        held while the stack runs
//	DIR/kafka/          the broker's log and state
//	DIR/postgres/       the cluster (see package postgres)
//	DIR/archive/        the archives of jobs that ask for one
//
// Start starts or restarts the stack. Topics, records and tables survive restarts, also after the process was killed.
// The embedded broker writes through the page cache: a killed process loses nothing, but a power failure may lose the
// newest records. The stack is for local use only: it listens on loopback, without replication or authentication.
// Existing servers can replace the broker, the database or both; no other part of kappactl knows whether the stack is
// embedded.
package devstack
