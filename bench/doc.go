// Command bench measures how long a replay takes, beside what the machine could do at most, in one run on one topic;
// then how a version follows live records, what readers notice of a flip, and how all this grows.
//
//	go run ./bench                               everything; about half an hour
//	go run ./bench -records 2000000 -rounds 3 -what limit,deploy
//	go run ./bench -json bench.json -write docs/performance.md
//	go run ./bench -from bench.json -write docs/performance.md
//
// It starts a real broker and a PostgreSQL server for itself, builds kappactl, runs it as a process of its own, and
// ends everything by pid. The variants take turns within a round and the medians of the rounds are compared: absolute
// figures move with the machine, ratios within a run hold. What a run counts is checked against totals known from
// writing the topic; a wrong result fails that part. docs/performance.md describes what is measured. It needs /proc
// (Linux).
package main
