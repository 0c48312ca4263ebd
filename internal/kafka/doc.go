// Package kafka is everything kappactl asks of a Kafka cluster: facts (Admin) and records (Fetcher).
//
// Facts come from fresh requests and never from a client's cache, because a cached topic id or leader makes a deleted and
// recreated topic look unchanged. Every call ends within about ten seconds, whatever the network does.
//
// Records come from raw FetchRequests, read_committed, one partition range at a time:
//
//	Fetch ── due partitions by leader ──> one request in flight a leader ──> decoded in its goroutine ──> Fetched
//	  ^                                                                                                     |
//	  └── next request is sent before a batch is handed out, when the log is known to hold more ────────────┘
//
// The next offset to ask for comes from the batch headers, so that it passes transaction markers, aborted records and
// holes that compaction left. Errors of a partition are of two kinds: final ones have a type of their own (GapError,
// RecreatedError, MissingTopicError, TooLargeError); all others pass, and the partition is asked again after a back-off.
package kafka
