-- Chats, pairs and labelled chats of traces that land whole; spans are grouped in stg_traces__spans. One row per unit.
with units as (

    {{ chat_units("stg_traces__records") }}

),

whole as (

    select * from units where unit.span is null

)

select
    {{ unit_columns("traces") }}
from whole
