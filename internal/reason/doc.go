// Package reason is the catalogue of what the product tells people about a version: verdicts, deployments, checks,
// warnings and events. Code decides on a Reason's Code and stores the Reason as JSON; only Text turns it into English.
//
// Each subject has a file: its codes, a constructor for each code and a function that returns the texts. A text is a
// text/template over the Reason's arguments, with these functions:
//
//	{{text .cause}}                           a string, or a nested Reason
//	{{count .unread}}                         12,345
//	{{plural .n "partition" "partitions"}}    1 partition, 12,345 partitions
//	{{duration .idle}}                        1m30s; durations are stored in seconds
//	{{percent .share}}                        3.01%
//	{{list .names}}                           a, b, c
//	{{lines .blockers}}                       each item on a line of its own, below the text
//
// A new code needs a constant, a constructor, a text and a line in examples of reason_test.go; `make docs` adds it to
// docs/cli-output.md.
package reason
