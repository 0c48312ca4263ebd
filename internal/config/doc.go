// Package config finds the settings of a command: which brokers, which database, how the agent runs.
//
// One table (table.go) describes every setting; flags, variables, the keys of the settings file, context show, Write
// and docs/settings.md come from it. Each setting is looked for in this order, and keeps where it was found
// (Settings.Origin):
//
//	flag > KAPPACTL_… variable > PG* variable > settings file > default
//
// One settings file counts, the first of: --config, KAPPACTL_CONFIG, kappactl.yaml in the working folder or, in a git
// repository, in a folder above it, kappactl/kappactl.yaml in the user's configuration folder. Files are never mixed,
// or a deploy could read its brokers from one and its database from another. docs/settings.md shows a whole file.
//
// Paths in the file are relative to the file. A password is never in the file; it comes from a file, a command,
// PGPASSWORD or PGPASSFILE, is a Secret, and is in no message.
package config
