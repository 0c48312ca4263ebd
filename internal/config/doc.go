// Package config finds the settings of a command: which brokers, which database, how the agent runs.
//
// Each setting is looked for in this order, and keeps where it was found (Settings.Origin):
//
//	flag > KAPPACTL_… variable > PG* variable > settings file > default
//
// One settings file counts, the first of: --config, KAPPACTL_CONFIG, ./kappactl.yaml, kappactl/kappactl.yaml in the user's
// configuration folder. Files are never mixed, or a deploy could read its brokers from one and its database from another. The file has
// contexts; --context or KAPPACTL_CONTEXT or its current key chooses one:
//
//	current: dev
//	contexts:
//	  dev:
//	    brokers: [127.0.0.1:19092]
//	    kafka: {tls: {ca_file: ca.pem}, sasl: {mechanism: SCRAM-SHA-512, user: app, password_file: kafka.password}}
//	    dsn: "host=127.0.0.1 dbname=app user=app"
//	    dsn_password_file: db.password
//	    schema: kappactl
//	    http: 127.0.0.1:8080
//	agent: {memory: 1GB, temp: /var/tmp, replays: 2, lease: 10s, heartbeat: 1s, poll: 500ms, log: json}
//
// The agent's hooks and webhooks (docs/hooks.md) stand below agent.
//
// Paths in it are relative to the file. A password never stands in the file; it comes from a file, a command, PGPASSWORD or
// PGPASSFILE, is a Secret, and is in no message.
package config
