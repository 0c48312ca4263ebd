// Package postgres runs a PostgreSQL server of our own from installed binaries: found by Find, its cluster made by Start
// when it is missing, ended by Stop.
//
// The server listens on the IPv4 loopback only, without a Unix socket (whose path may be at most 107 bytes long). Its
// one role has a generated password, kept with mode 0600 in a pgpass file that the connection string names, so that psql
// and every program built on libpq or pgx connects with the string alone and the string holds no secret.
//
// PostgreSQL refuses to run as root. As root the server runs as an unprivileged account (postgres, else nobody); Folder
// finds a place which that account can reach.
//
//	Data/            0711, of the caller
//	  pgdata/        0700, of the server's account: the cluster
//	  pgpass         0600, of the caller
//	  server.log     what the server says
package postgres
