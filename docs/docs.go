// Package docs holds the documents that the program itself can show: kappactl help exit-codes.
package docs

import "embed"

// Files are the documents of this folder, by name.
//
//go:embed exit-codes.md cli-output.md hooks.md job-file.md queries.md settings.md
var Files embed.FS
