// Package netstack has Go functions without a body: those it links to.
