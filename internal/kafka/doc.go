// Package kafka contains all access to a Kafka cluster: facts (Admin) and records (Fetcher).
//
// Facts come from fresh requests and never from a client's cache, because a cached topic id or leader makes a deleted
// and recreated topic look unchanged. Every call ends within about ten seconds, whatever the network does.
//
// Records come from raw FetchRequests, read_committed, one partition range at a time:
//
//	Fetch ── due partitions by leader ──> one request in flight per leader ──> decoded in its goroutine ──> Fetched
//	  ^                                                                                                       |
//	  └── next request is sent before a batch is handed out, when the log is known to hold more ──────────────┘
//
// The next offset comes from the batch headers, so that it passes transaction markers, aborted records and holes left
// by compaction. Partition errors are of two kinds. Final errors have types of their own (GapError, RecreatedError,
// MissingTopicError, TooLargeError). All others are temporary: the partition is fetched again after a back-off.
package kafka
