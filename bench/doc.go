// Command bench measures how long a replay takes, beside what the machine could do at most, in one run on one topic.
//
//	go run ./bench                               10 M page views and the 3 M flights, three rounds
//	go run ./bench -records 2000000 -rounds 3 -what limit,deploy
//
// It starts a real broker and a PostgreSQL server for itself, builds kappactl, runs it as a process of its own, and ends
// everything by pid. The variants take turns within a round and the medians of the rounds are compared: absolute figures
// move with the machine, ratios within a run hold. What a run counts is checked against totals known from writing the topic;
// a wrong result ends the benchmark. docs/performance.md describes what is measured. It needs /proc (Linux).
package main
