// Package devstack is everything kappactl needs, on one machine, for trying and developing: an embedded Kafka broker, a
// PostgreSQL server run from installed binaries (package postgres), and sample data to load.
//
//	DIR/kappactl.yaml   settings that make every other command use this stack
//	DIR/dev.json        ports and folders kept over restarts
//	DIR/dev.lock        held while the stack runs
//	DIR/kafka/          the broker's log and state
//	DIR/postgres/       the cluster (see package postgres)
//
// Start brings it up or brings it up again: topics, records and tables are those of the last time, also after the
// process was killed. The embedded broker writes through the page cache, so that a killed process loses nothing and a
// machine that loses power may lose the newest records. It is for local use only: it listens on the loopback, without
// replication or authentication. Existing servers can take the place of either half; nothing else in kappactl knows
// whether the stack is embedded.
package devstack
