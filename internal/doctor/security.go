package doctor

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
)

// onThisMachine reports whether a connection to a host does not leave the machine.
func onThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.HasPrefix(host, "/") || host == "localhost" || err == nil && ip.IsLoopback()
}

// encryption notes whether the connection to the database is encrypted and the server's certificate verified.
func (e *examination) encryption(ctx context.Context) {
	const check, cure = "database TLS", "sslmode=verify-full and sslrootcert=FILE in dsn, or PGSSLMODE and PGSSLROOTCERT"
	err := e.pool.ReadOnly(ctx, func(tx *pg.Tx) error {
		conn := tx.Raw().Conn()
		secured, encrypted := conn.PgConn().Conn().(*tls.Conn)
		config := conn.Config()
		switch {
		case encrypted && len(secured.ConnectionState().VerifiedChains) > 0:
			e.note(check, OK, "", "encrypted, the server's name and certificate are verified")
		case encrypted && config.TLSConfig != nil && config.TLSConfig.VerifyPeerCertificate != nil:
			e.note(check, OK, "", "encrypted, the server's certificate is verified, its name is not (verify-ca)")
		case encrypted:
			e.note(check, Warning, cure,
				"encrypted, but nothing proves that it is the right server: sslmode does not verify its certificate")
		case onThisMachine(config.Host):
			e.note(check, OK, "", "not encrypted, and on this machine")
		default:
			e.note(check, Warning, cure, "not encrypted: who is on the way can read and change what is sent")
		}
		return nil
	})
	if err != nil {
		e.failed(ctx, check, err)
	}
}

// brokerEncryption notes whether the connections to the brokers are encrypted; TLS always verifies there.
func (e *examination) brokerEncryption(k kafka.Config) {
	const check = "brokers TLS"
	away := false
	for _, b := range k.Brokers {
		host, _, err := net.SplitHostPort(b)
		if err != nil {
			host = b
		}
		away = away || !onThisMachine(host)
	}
	switch {
	case k.TLS != nil:
		e.note(check, OK, "", "encrypted, the brokers' names and certificates are verified")
	case away:
		e.note(check, Warning, "kafka: {tls: {}} in the settings, or KAPPACTL_KAFKA_TLS=true",
			"not encrypted: who is on the way can read and change what is sent")
	default:
		e.note(check, OK, "", "not encrypted, and on this machine")
	}
}

// brokerRights notes the rights beside those on topics that agents lack. Commands do not need them.
func (e *examination) brokerRights(ctx context.Context) {
	const check = "brokers rights"
	if e.admin == nil || !e.facts.Agents {
		return
	}
	causes, cures, err := e.admin.Lacking(ctx)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	for i, cause := range causes {
		e.note(check, Warning, cures[i], "%s", cause)
	}
	if len(causes) == 0 {
		e.note(check, OK, "", "groups and cluster as agents need them")
	}
}

// passwordFiles warns of files with passwords and keys that other users of this machine can read.
func (e *examination) passwordFiles() {
	const check = "password files"
	files := 0
	for _, path := range []string{
		e.settings.Password.File, e.settings.Kafka.SASL.Password.File,
		e.settings.Kafka.TLS.KeyFile,
	} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			continue // whoever reads it reports it
		}
		files++
		if mode := info.Mode().Perm(); mode&0o027 != 0 {
			e.note(check, Warning, "chmod 600 "+render.ShellWord(path), "%s has mode %04o: other users can read or change it",
				path, mode)
			files--
		}
	}
	if files > 0 {
		e.note(check, OK, "", "no other user can read them")
	}
}
