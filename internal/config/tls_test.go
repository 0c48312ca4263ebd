package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/certtest"
	"github.com/kappactl/kappactl/internal/config"
)

func TestTLSIsReadFromFiles(t *testing.T) {
	f := certtest.Make(t, "client", "localhost")
	s := load(t, nil, world(t, map[string]string{
		"KAPPACTL_KAFKA_TLS_CA_FILE": f.CA, "KAPPACTL_KAFKA_TLS_CERT_FILE": f.ClientCert, "KAPPACTL_KAFKA_TLS_KEY_FILE": f.ClientKey,
		"KAPPACTL_KAFKA_TLS_SERVER_NAME": "kafka.example",
	}))
	c, err := s.Kafka.TLS.Client()
	if err != nil {
		t.Fatal(err)
	}
	if c.RootCAs == nil || c.ServerName != "kafka.example" || c.GetClientCertificate == nil || c.InsecureSkipVerify {
		t.Errorf("got %+v", c)
	}
	if c, err := (config.TLS{}).Client(); c != nil || err != nil {
		t.Errorf("without TLS: %v, %v", c, err)
	}
}

func TestTLSFilesThatCannotBeUsedAreNamed(t *testing.T) {
	f := certtest.Make(t, "client", "localhost")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]config.TLS{
		"kafka.tls.ca_file: /nowhere/ca.pem: no such file":      {CAFile: "/nowhere/ca.pem"},
		"it holds no certificate in PEM form":                   {CAFile: empty},
		"kafka.tls.cert_file and key_file: /nowhere/client.key": {CertFile: f.ClientCert, KeyFile: "/nowhere/client.key"},
		"private key does not match public key":                 {CertFile: f.ClientCert, KeyFile: f.ServerKey},
	} {
		c.Enabled = true
		if _, err := c.Client(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", c, err, want)
		}
	}
	_, err := config.Load(nil, world(t, map[string]string{"KAPPACTL_KAFKA_TLS_CERT_FILE": f.ClientCert}))
	if err == nil || !strings.Contains(err.Error(), "without the other") {
		t.Errorf("a certificate without its key: %v", err)
	}
}
