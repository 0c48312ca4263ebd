package archive

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/kappactl/kappactl/internal/retry"
)

// S3 is how buckets are reached. The zero value is AWS.
type S3 struct {
	Endpoint   string // https://HOST[:PORT], or http://; empty: AWS
	Region     string // empty: the endpoint is asked
	Addressing string // AddressPath or AddressHost; empty: host for AWS, path for others
	CAFile     string // roots of the endpoint's certificate in PEM form; empty: those of the system
	// Keys returns the access key and its secret. nil: AWS_ACCESS_KEY_ID and the like, the shared credentials file of AWS,
	// or the role of the machine.
	Keys func(ctx context.Context) (id, secret string, err error)
	// Stall is how long a request may wait for the endpoint to take or send a byte, default 30 s.
	Stall time.Duration
}

// The ways to name a bucket in a request.
const (
	AddressPath = "path" // ENDPOINT/BUCKET
	AddressHost = "host" // BUCKET.ENDPOINT
)

// awsEndpoint is where AWS answers; the library adds the region.
const awsEndpoint = "https://s3.amazonaws.com"

// s3Client sends requests to one endpoint.
type s3Client struct {
	core      minio.Core
	transport *http.Transport
	keys      *credentials.Credentials
	endpoint  string
	region    string // of the settings
}

// The attempts at a request that fails for a reason that may pass: six within about 3 s.
const (
	requestTries = 6
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

func newS3Client(s S3) (*s3Client, error) {
	endpoint := cmp.Or(s.Endpoint, awsEndpoint)
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("archive.s3.endpoint: %w", err)
	}
	transport, err := s.transport(u.Scheme == "https")
	if err != nil {
		return nil, err
	}
	keys := s.keys()
	c, err := minio.NewCore(u.Host, &minio.Options{
		Creds: keys, Secure: u.Scheme == "https", Transport: transport, Region: s.Region, BucketLookup: s.lookup(),
		MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("archive.s3.endpoint %s: %w", endpoint, err)
	}
	return &s3Client{core: *c, transport: transport, keys: keys, endpoint: endpoint, region: s.Region}, nil
}

func (s S3) lookup() minio.BucketLookupType {
	switch s.Addressing {
	case AddressPath:
		return minio.BucketLookupPath
	case AddressHost:
		return minio.BucketLookupDNS
	}
	return minio.BucketLookupAuto
}

func (s S3) transport(secure bool) (*http.Transport, error) {
	t, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	stall := cmp.Or(s.Stall, 30*time.Second)
	dialer := net.Dialer{Timeout: min(stall, 10*time.Second)}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &stallConn{Conn: conn, most: stall}, nil
	}
	if s.CAFile == "" || !secure {
		return t, nil
	}
	text, err := os.ReadFile(s.CAFile)
	if err != nil {
		return nil, fmt.Errorf("archive.s3.ca_file: %w", err)
	}
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("archive.s3.ca_file: %s holds no certificate in PEM form", s.CAFile)
	}
	return t, nil
}

// stallConn fails a read or a write that makes no progress for a time.
type stallConn struct {
	net.Conn
	most time.Duration
}

func (c *stallConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.most)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write also puts off the deadline of a read that waits for the answer meanwhile.
func (c *stallConn) Write(b []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.most)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// try makes a request to a bucket, and makes it again when it failed for a reason that may pass. The error is an
// *S3Error, that of ctx, or fs.ErrNotExist of a file.
func (c *s3Client) try(ctx context.Context, at bucket, object string, request func() error) error {
	for n := 1; ; n++ {
		err := request()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		explained, passes := c.explain(err, at, object)
		if !passes || n == requestTries {
			return explained
		}
		if retry.Sleep(ctx, retry.Backoff(n, firstPause, longestPause)) != nil {
			return ctx.Err()
		}
	}
}
