package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kappactl/kappactl/internal/job"
)

// Client returns the configuration of a TLS client, or nil without TLS. A new client certificate in the files is used
// from the next connection on. An error names the file and the setting.
func (t TLS) Client() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, wrongFile("kafka.tls.ca_file", t.CAFile, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, wrongFile("kafka.tls.ca_file", t.CAFile, errors.New("it holds no certificate in PEM form"))
		}
	}
	if t.CertFile == "" {
		return c, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		return &pair, err
	}
	if _, err := load(); err != nil {
		return nil, wrongFile("kafka.tls.cert_file and key_file", t.CertFile, err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return c, nil
}

// wrongFile is a refusal that names a setting and its file.
func wrongFile(setting, path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		path, err = at.Path, at.Err
	}
	return &job.Refusal{
		Code: job.ExitUsage, Cause: fmt.Sprintf("%s: %s: %s", setting, path, err),
		Next: "correct the path or the file", Err: err,
	}
}
