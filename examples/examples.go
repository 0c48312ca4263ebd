// Package examples holds job files to begin with.
package examples

import "embed"

// Files are the job files, by name.
//
//go:embed *.yaml
var Files embed.FS
