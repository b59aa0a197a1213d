-- Synthetic chats, pairs and labelled chats. One row per unit.
with units as (

    {{ chat_units("stg_synthetic__records") }}

)

select
    {{ unit_columns("synthetic") }}
from units
