// Package postgres runs a PostgreSQL server from installed binaries. Find finds them, Start creates the cluster if it
// is missing and starts the server, Stop ends it.
//
// The server listens on the IPv4 loopback only, without a Unix socket (whose path may be at most 107 bytes long). Its
// only role has a generated password, kept with mode 0600 in a pgpass file that the connection string names. psql and
// every program built on libpq or pgx can therefore connect with the string alone, which contains no secret.
//
// PostgreSQL refuses to run as root. As root the server runs as an unprivileged account (postgres, otherwise nobody);
// Folder finds a place that this account can reach.
//
//	Data/            0711, of the caller
//	  pgdata/        0700, of the server's account: the cluster
//	  pgpass         0600, of the caller
//	  server.log     the server's log
package postgres
