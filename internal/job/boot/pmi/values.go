package pmi

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// What a rank puts between two fences goes into the launcher's table as one
// text, which others get with one question where PMI would take one per key.
// Keys and values are any bytes, but the text has only letters, digits and
// "-_.", which no launcher quotes or splits at: key.value.key.value in base64.

// encodeValues returns the text for the values, of which the ranks are left
// out.
func encodeValues(values []boot.Value) string {
	var fields []string
	for _, v := range values {
		fields = append(fields, base64.RawURLEncoding.EncodeToString([]byte(v.Key)), base64.RawURLEncoding.EncodeToString(v.Value))
	}
	return strings.Join(fields, ".")
}

// decodeValues adds what text holds to into.
func decodeValues(text string, into map[string]string) error {
	if text == "" {
		return nil
	}
	fields := strings.Split(text, ".")
	if len(fields)%2 != 0 {
		return fmt.Errorf("%d fields, which are no pairs", len(fields))
	}
	for i := 0; i < len(fields); i += 2 {
		key, err := base64.RawURLEncoding.DecodeString(fields[i])
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
		value, err := base64.RawURLEncoding.DecodeString(fields[i+1])
		if err != nil {
			return fmt.Errorf("value of %.32q: %w", key, err)
		}
		into[string(key)] = string(value)
	}
	return nil
}

// A text longer than the launcher takes as a value goes in pieces. The first
// byte of a piece says whether there is another.
const (
	pieceMore = 'm'
	pieceLast = 'l'
)

// pieces splits text into values of at most limit bytes, 2 or more.
func pieces(text string, limit int) []string {
	var out []string
	for len(text) > limit-1 {
		out = append(out, string(pieceMore)+text[:limit-1])
		text = text[limit-1:]
	}
	return append(out, string(pieceLast)+text)
}
