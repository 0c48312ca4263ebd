package archive

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3Error is a bucket that does not answer as it should.
type S3Error struct {
	Location string
	Trouble  Trouble
	Cause    string
	Cure     string
	Err      error
}

// Trouble is the kind of an S3Error.
type Trouble int

// The kinds.
const (
	TroubleEndpoint    Trouble = iota // it is not reached, or it answers what it should not
	TroubleCredentials                // there are none, or they are wrong
	TroubleRights                     // the credentials lack a right
	TroubleBucket                     // there is no such bucket
	TroubleRegion                     // the bucket is in another one
)

func (e *S3Error) Error() string {
	text := e.Location + ": " + e.Cause
	if e.Cure != "" {
		text += "; " + e.Cure
	}
	return text
}

// Unwrap gives the error of the request.
func (e *S3Error) Unwrap() error { return e.Err }

const (
	checkKeys = "check archive.s3.access_key_id and archive.s3.secret_access_key_file in the settings, or the AWS_ variables of the process"
	setKeys   = "set archive.s3.access_key_id and archive.s3.secret_access_key_file in the settings, AWS_ACCESS_KEY_ID and " +
		"AWS_SECRET_ACCESS_KEY, or give the machine a role"
	checkEndpoint = "check archive.s3.endpoint in the settings"
)

// explain turns the error of a request into what a person can act on: an *S3Error, or fs.ErrNotExist for a file that is
// not there. passes reports whether the request may succeed a little later.
func (c *s3Client) explain(err error, at bucket, object string) (_ error, passes bool) {
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return c.unanswered(err, at)
	}
	e := &S3Error{Location: at.location, Err: err}
	switch code := answer.Code; {
	case code == minio.NoSuchKey && object != "":
		return &fs.PathError{Op: "open", Path: at.location + "/" + object, Err: fs.ErrNotExist}, false
	case code == minio.NoSuchBucket:
		e.Trouble, e.Cause = TroubleBucket, fmt.Sprintf("there is no bucket %s at %s", at.name, c.endpoint)
		e.Cure = "create it, or correct archive.location or archive.s3.endpoint"
	case code == "InvalidAccessKeyId", code == "XAdminUserNotFound": // the latter is versitygw's word
		e.Trouble, e.Cause, e.Cure = TroubleCredentials, "the endpoint does not know the access key", checkKeys
	case code == "SignatureDoesNotMatch":
		e.Trouble, e.Cause, e.Cure = TroubleCredentials, "the secret does not belong to the access key", checkKeys
	case slices.Contains([]string{"ExpiredToken", "InvalidToken", "TokenRefreshRequired"}, code):
		e.Trouble, e.Cause, e.Cure = TroubleCredentials, "the session token is not valid any more", checkKeys
	case code == "RequestTimeTooSkewed":
		e.Cause, e.Cure = "the clock of this machine differs too much from that of the endpoint", "set the clock"
	case slices.Contains([]string{
		"AuthorizationHeaderMalformed", "InvalidRegion", "PermanentRedirect",
		"IllegalLocationConstraintException",
	}, code):
		return c.elsewhere(e, answer)
	case code == minio.AccessDenied:
		c.denied(e, at)
	default:
		e.Cause = fmt.Sprintf("%s answered %s (HTTP status %d): %s", c.endpoint, code, answer.StatusCode, answer.Message)
		passes = answer.StatusCode >= http.StatusInternalServerError ||
			slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooManyRequests}, answer.StatusCode) ||
			code == "SlowDown"
	}
	if e.Trouble == TroubleCredentials {
		c.keys.Expire() // they may have been replaced
	}
	return e, passes
}

// elsewhere is a bucket of another region. Without a region in the settings the library has noted that of the answer,
// and another attempt uses it.
func (c *s3Client) elsewhere(e *S3Error, answer minio.ErrorResponse) (error, bool) {
	e.Trouble, e.Cause, e.Cure = TroubleRegion, "the bucket is in another region", "set archive.s3.region in the settings"
	if answer.Region != "" && answer.Region != c.region {
		e.Cause, e.Cure = "the bucket is in region "+answer.Region, "set archive.s3.region: "+answer.Region+" in the settings"
	}
	if c.region != "" {
		e.Cause += ", and archive.s3.region is " + c.region
	}
	return e, c.region == "" && answer.Region != ""
}

// denied is a request that the credentials may not make, or one without credentials.
func (c *s3Client) denied(e *S3Error, at bucket) {
	if keys, err := c.keys.GetWithContext(c.core.CredContext()); err == nil &&
		keys.SignerType == credentials.SignatureAnonymous {
		e.Trouble, e.Cause, e.Cure = TroubleCredentials, "there are no credentials", setKeys
		return
	}
	e.Trouble, e.Cause = TroubleRights, "the credentials may not do this"
	e.Cure = fmt.Sprintf("grant s3:GetObject, s3:PutObject and s3:DeleteObject on arn:aws:s3:::%s/%s* and s3:ListBucket on arn:aws:s3:::%s",
		at.name, at.prefix, at.name)
}

// unanswered is a request without an answer of S3.
func (c *s3Client) unanswered(err error, at bucket) (error, bool) {
	e := &S3Error{Location: at.location, Err: err}
	var (
		keys        *keysError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &keys):
		e.Trouble, e.Cause = TroubleCredentials, "the access key cannot be read: "+err.Error()
		e.Cure = "check archive.s3.secret_access_key_file or archive.s3.secret_access_key_command in the settings"
		return e, false
	case errors.As(err, &certificate):
		e.Cause = fmt.Sprintf("the certificate of %s is not trusted: %s", c.endpoint, certificate.Err)
		e.Cure = "set archive.s3.ca_file in the settings"
		return e, false
	case errors.Is(err, http.ErrSchemeMismatch):
		e.Cause, e.Cure = c.endpoint+" does not speak TLS", "write http:// in archive.s3.endpoint, or correct the port"
		return e, false
	case errors.Is(err, context.Canceled):
		return err, false
	}
	e.Cause, e.Cure = fmt.Sprintf("%s does not answer: %s", c.endpoint, rootOf(err)), checkEndpoint
	return e, true
}

// rootOf is the innermost error: those around it repeat the address.
func rootOf(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
