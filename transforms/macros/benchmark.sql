{#- A JSON value as the text of an item: a text as it is, a list of texts or of chat turns (nested ones too) joined by -#}
{#- line ends, null and absent as null, anything else as its JSON. -#}
{% macro item_text(value) -%}
    nullif(case json_type({{ value }})
        when 'VARCHAR' then ({{ value }}) ->> '$'
        when 'NULL' then null
        when 'ARRAY' then case
            when json_type({{ value }}, '$[0]') = 'VARCHAR' then array_to_string(({{ value }}) ->> '$[*]', e'\n')
            when json_type({{ value }}, '$[0].content') = 'VARCHAR'
                then array_to_string(({{ value }}) ->> '$[*].content', e'\n')
            when json_type({{ value }}, '$[0][0].content') = 'VARCHAR'
                then array_to_string(({{ value }}) ->> '$[*][*].content', e'\n')
            else cast({{ value }} as varchar)
        end
        else cast({{ value }} as varchar)
    end, '')
{%- endmacro %}


{#- The values of those fields, of a list of names, that a JSON object has; `keys` are its json_keys. -#}
{% macro item_values(body, keys, fields) -%}
    list_transform(
        list_filter({{ fields }}, lambda f: list_contains({{ keys }}, f)),
        lambda f: json_extract({{ body }}, '/' || f)
    )
{%- endmacro %}


{#- The texts of JSON values, without those that have none. -#}
{% macro item_texts(values) -%}
    list_filter(list_transform({{ values }}, lambda v: {{ item_text("v") }}), lambda t: t is not null)
{%- endmacro %}


{#- Choices of an item: a list of texts, a list of objects with a text, or an object with a list of texts; else null. -#}
{% macro item_choices(value) -%}
    nullif(case
        when json_type({{ value }}) = 'ARRAY' and json_type({{ value }}, '$[0]') = 'OBJECT'
            then ({{ value }}) ->> '$[*].text'
        when json_type({{ value }}) = 'ARRAY' then ({{ value }}) ->> '$[*]'
        when json_type({{ value }}, '$.text') = 'ARRAY' then ({{ value }}) ->> '$.text[*]'
    end, [])
{%- endmacro %}


{#- The usual names of an item's fields, for suites that contracts/reference/benchmarks.csv does not know. -#}
{% macro usual_fields(part) -%}
    {%- set names = {
        "context": ["passage", "context", "CONTEXTS", "article"],
        "question": ["question", "QUESTION", "Question", "problem", "prompt", "query", "input", "instruction", "goal",
            "messages", "train"],
        "choices": ["choices", "options", "Choices", "Options", "endings"],
        "answer": ["answer", "Answer", "answerKey", "target", "gold", "golden", "label", "ground_truth", "final_decision",
            "correct_answer", "expected_answer", "solution", "canonical_solution", "completion", "output", "answers"],
        "item_key": ["id", "task_id", "question_id", "key", "doc_id", "qid", "_id", "idx"],
    } -%}
    ['{{ names[part] | join("', '") }}']
{%- endmacro %}


{#- The names under which a part of an item stands: those of its entry in the registry, else the usual ones. -#}
{% macro entry_fields(part) -%}
    coalesce(string_split(entry.{{ part }}, ' '), {{ usual_fields(part) }})
{%- endmacro %}
