// Package cli is the command line: one file a command, each an options struct, a constructor that parses into it and a
// run function. It also joins the packages of the product, which know one another only by small interfaces; agent.go
// holds that wiring.
//
// Results go to the output stream, progress and reasons to the error stream. Run turns every error into the exit code
// that docs/exit-codes.md lists; no command ends the process by itself.
package cli
