-- Landed traces records with the licence and options that count now. One row per record.
{{ landed_records("traces") }}
