// Package certtest creates certificates for tests of TLS: an authority, a server and a client, and an authority that is
// not trusted.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Files are the paths of PEM files in one folder.
type Files struct {
	CA, OtherCA           string
	ServerCert, ServerKey string
	Server                string // key and certificate in one file, as Kafka reads a PEM key store
	ClientCert, ClientKey string
}

// Make writes certificates that are good for a day: the server's for these names or addresses, the client's for the
// common name client.
func Make(t testing.TB, client string, hosts ...string) Files {
	t.Helper()
	dir := t.TempDir()
	m := maker{t: t, dir: dir}
	ca, other := m.authority("ca"), m.authority("other-ca")
	server := m.leaf(ca, "server", "server", hosts)
	m.leaf(ca, "client", client, nil)
	f := Files{
		CA: ca.path, OtherCA: other.path, ServerCert: server.path, ServerKey: m.path("server.key"),
		Server:     m.path("server.both"),
		ClientCert: m.path("client.pem"), ClientKey: m.path("client.key"),
	}
	var both []byte
	for _, path := range []string{f.ServerKey, f.ServerCert} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, text...)
	}
	m.write("server.both", both)
	return f
}

type maker struct {
	t      testing.TB
	dir    string
	serial int64
}

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	path string
}

func (m *maker) path(name string) string { return filepath.Join(m.dir, name) }

func (m *maker) write(name string, text []byte) {
	m.t.Helper()
	if err := os.WriteFile(m.path(name), text, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *maker) authority(name string) pair {
	m.t.Helper()
	return m.sign(name, pair{}, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
}

func (m *maker) leaf(by pair, name, common string, hosts []string) pair {
	m.t.Helper()
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: common}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	return m.sign(name, by, c)
}

// sign writes NAME.pem and NAME.key. Without by, the certificate is self-signed.
func (m *maker) sign(name string, by pair, c *x509.Certificate) pair {
	m.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		m.t.Fatal(err)
	}
	if by.cert == nil {
		by = pair{cert: c, key: key}
	}
	m.serial++
	c.SerialNumber = big.NewInt(m.serial)
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, by.cert, &key.PublicKey, by.key)
	if err != nil {
		m.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		m.t.Fatal(err)
	}
	m.write(name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	m.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	return pair{cert: c, key: key, path: m.path(name + ".pem")}
}
