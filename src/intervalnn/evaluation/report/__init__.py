"""Report: tables and figures, from saved results only. This package alone draws."""
