"""Chat templates written for the tests, in the style of current families, and conversations to render with them."""

FAMILIES = {
    "chatml": """{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}""",
    "llama2": """{%- if messages[0]['role'] == 'system' -%}
    {%- set loop_messages = messages[1:] %}
    {%- set system_message = '<<SYS>>\\n' + messages[0]['content'].strip() + '\\n<</SYS>>\\n\\n' -%}
{%- else -%}
    {%- set loop_messages = messages %}
    {%- set system_message = '' -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}
    {%- endif -%}
    {%- if loop.index0 == 0 -%}{%- set content = system_message + message['content'] -%}{%- else -%}{%- set content = message['content'] -%}{%- endif -%}
    {%- if message['role'] == 'user' -%}
        {{ bos_token + '[INST] ' + content | trim + ' [/INST]' }}
    {%- elif message['role'] == 'assistant' -%}
        {{ ' ' + content | trim + ' ' + eos_token }}
    {%- endif -%}
{%- endfor -%}""",
    "llama3-tools": """{{- bos_token }}
{%- if custom_tools is defined %}{%- set tools = custom_tools %}{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system message is pulled out first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- "You have access to these functions:\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("Cannot put tools in the first user message when there's no first user message!") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or (message.content is iterable and message.content is not string) %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "mistral-tools": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant/user/assistant/...") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
""",
    "gemma": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
""",
    "phi": """{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}{% else %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}""",
    "deepseek": """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{{'<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool['function']['name'] + '\\n' + '```json' + '\\n' + tool['function']['arguments'] | tojson + '\\n' + '```' + '<｜tool▁call▁end｜>'}}{%- set ns.is_first = true -%}{%- else %}{{'\\n' + '<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool['function']['name']}}{%- endif %}{%- endfor %}{{'<｜tool▁calls▁end｜><｜end▁of▁sentence｜>'}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{%- if ns.is_tool %}{{'<｜tool▁outputs▁end｜>' + message['content'] + '<｜end▁of▁sentence｜>'}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>'}}{%- set ns.is_output_first = false %}{%- else %}{{'\\n<｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>'}}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'<｜tool▁outputs▁end｜>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜><think>\\n'}}{% endif %}""",
    "qwen3": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\nYou may call one or more functions.\\n\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\\n<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "harmony": """{#- Types of parameters as TypeScript. -#}
{%- macro render_type(spec, required_params, depth=0) -%}
    {%- if spec.type == "array" -%}
        {%- if spec['items'] -%}
            {%- if spec['items']['type'] == "string" -%}
                {{- "string[]" }}
            {%- elif spec['items']['type'] in ("number", "integer") -%}
                {{- "number[]" }}
            {%- else -%}
                {%- set inner_type = render_type(spec['items'], required_params, depth + 1) -%}
                {%- if inner_type == "object | object" or inner_type|length > 50 -%}
                    {{- "any[]" }}
                {%- else -%}
                    {{- inner_type + "[]" }}
                {%- endif -%}
            {%- endif -%}
        {%- else -%}
            {{- "any[]" }}
        {%- endif -%}
        {%- if spec.nullable -%}{{- " | null" }}{%- endif -%}
    {%- elif spec.type is defined and spec.type is iterable and spec.type is not string and spec.type is not mapping -%}
        {{- spec.type | join(" | ") }}
    {%- elif spec.oneOf -%}
        {%- for variant in spec.oneOf -%}
            {{- render_type(variant, required_params, depth=depth + 1) -}}
            {%- if variant.description %}{{- "// " + variant.description }}{%- endif -%}
            {%- if not loop.last %}{{ " | " }}{% endif -%}
        {%- endfor -%}
    {%- elif spec.type == "string" -%}
        {%- if spec.enum -%}
            {{- '"' + spec.enum|join('" | "') + '"' -}}
        {%- else -%}
            {{- "string" }}
            {%- if spec.nullable %}{{- " | null" }}{%- endif -%}
        {%- endif -%}
    {%- elif spec.type == "object" -%}
        {%- if spec.properties -%}
            {{- "{\\n" }}
            {%- for prop_name, prop_spec in spec.properties.items() -%}
                {{- "  " * depth + prop_name -}}
                {%- if prop_name not in (spec.required or []) -%}{{- "?" }}{%- endif -%}
                {{- ": " }}{{ render_type(prop_spec, spec.required or [], depth + 1) }}
                {%- if not loop.last -%}{{- ", " }}{%- endif -%}
            {%- endfor -%}
            {{- "}" }}
        {%- else -%}
            {{- "object" }}
        {%- endif -%}
    {%- else -%}
        {{- {"number": "number", "integer": "number", "boolean": "boolean"}.get(spec.type, "any") }}
    {%- endif -%}
{%- endmacro -%}
{%- macro render_tools(tools) -%}
    {{- "## functions\\n\\nnamespace functions {\\n\\n" }}
    {%- for tool in tools %}
        {%- set tool = tool.function %}
        {{- "// " + tool.description + "\\n" }}
        {{- "type "+ tool.name + " = " }}
        {%- if tool.parameters and tool.parameters.properties -%}
            {{- "(_: " }}
            {{- "{\\n" }}
            {%- for param_name, param_spec in tool.parameters.properties.items() %}
                {{- "// " + param_spec.description|default('-', true) + "\\n" }}
                {{- param_name }}
                {%- if param_name not in (tool.parameters.required or []) -%}
                    {{- "?" }}
                {%- endif -%}
                {{- ": " }}
                {{- render_type(param_spec, tool.parameters.required or []) }}
                {%- if param_spec.default is defined -%}
                    {%- if param_spec.enum %}
                        {{- ", // default: " + param_spec.default }}
                    {%- elif param_spec.oneOf %}
                        {{- "// default: " + param_spec.default }}
                    {%- else %}
                        {{- ", // default: " + param_spec.default|tojson }}
                    {%- endif -%}
                {%- endif -%}
                {%- if not loop.last %}{{- ",\\n" }}{%- else %}{{- "\\n" }}{%- endif -%}
            {%- endfor %}
            {{- "}) => any;\\n\\n" }}
        {%- else -%}
            {{- "() => any;\\n\\n" }}
        {%- endif -%}
    {%- endfor %}
    {{- "} // namespace functions" }}
{%- endmacro -%}
{{- "<|start|>system<|message|>" }}
{{- "Knowledge cutoff: 2024-06\\nCurrent date: " + strftime_now("%Y-%m-%d") + "\\n\\nReasoning: " + (reasoning_effort or "medium") }}
{%- if tools %}{{- "\\nCalls to these tools must go to the commentary channel: 'functions'." }}{%- endif %}
{{- "<|end|>" }}
{%- if messages[0].role in ["developer", "system"] %}
    {%- set developer_message = messages[0].content %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set developer_message = "" %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if developer_message or tools %}
    {{- "<|start|>developer<|message|>" }}
    {%- if developer_message %}{{- "# Instructions\\n\\n" + developer_message + "\\n\\n" }}{%- endif %}
    {%- if tools -%}{{- "# Tools\\n\\n" + render_tools(tools) }}{%- endif -%}
    {{- "<|end|>" }}
{%- endif %}
{%- set last_tool_call = namespace(name=none) %}
{%- for message in loop_messages -%}
    {%- if message.role == 'assistant' -%}
        {%- if "tool_calls" in message %}
            {%- set future_final_message = namespace(found=false) %}
            {%- for future_message in loop_messages[loop.index:] %}
                {%- if future_message.role == 'assistant' and "tool_calls" not in future_message %}
                    {%- set future_final_message.found = true %}
                    {%- break %}
                {%- endif %}
            {%- endfor %}
            {%- set tool_call = message.tool_calls[0] %}
            {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
            {%- if message.thinking and not future_final_message.found %}
                {{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking + "<|end|>" }}
            {%- endif %}
            {{- "<|start|>assistant to=functions." + tool_call.name + "<|channel|>commentary json<|message|>" + tool_call.arguments|tojson + "<|call|>" }}
            {%- set last_tool_call.name = tool_call.name %}
        {%- elif loop.last and not add_generation_prompt %}
            {%- if "thinking" in message %}{{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking + "<|end|>" }}{%- endif %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|return|>" }}
        {%- else %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|end|>" }}
            {%- set last_tool_call.name = none %}
        {%- endif %}
    {%- elif message.role == 'tool' -%}
        {%- if last_tool_call.name is none %}{{- raise_exception("Message has tool role, but there was no previous assistant message with a tool call!") }}{%- endif %}
        {{- "<|start|>functions." + last_tool_call.name + " to=assistant<|channel|>commentary<|message|>" + message.content|tojson + "<|end|>" }}
    {%- elif message.role == 'user' -%}
        {{- "<|start|>user<|message|>" + message.content + "<|end|>" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|start|>assistant
{%- endif -%}""",
    "command-r": """{{ bos_token }}{%- macro json_to_python_type(json_spec) %}
{%- set basic_type_map = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"} %}
{%- if basic_type_map[json_spec.type] is defined %}
{{- basic_type_map[json_spec.type] }}
{%- elif json_spec.type == "array" %}
{{- "List[" + json_to_python_type(json_spec['items']) + "]"}}
{%- elif json_spec.type == "object" %}
{{- "Dict[str, " + json_to_python_type(json_spec.additionalProperties) + ']'}}
{%- elif json_spec.type is iterable %}
{{- "Union[" }}
{%- for t in json_spec.type %}
{{- json_to_python_type({"type": t}) }}
{%- if not loop.last %}
{{- "," }}
{%- endif %}
{%- endfor %}
{{- "]" }}
{%- else %}
{{- "Any" }}
{%- endif %}
{%- endmacro %}
{%- macro document(n) %}Document: {{ n }}
{{ caller() }}{% endmacro %}
{%- for tool in tools or [] %}
{%- set ns = namespace(text='def ' ~ tool.function.name ~ '(') %}
{%- for name, fields in tool.function.parameters.properties|dictsort %}
{%- set ns.text = ns.text ~ (', ' if not loop.first) ~ name ~ ': ' ~ json_to_python_type(fields) %}
{%- endfor %}
{{ ns.text }}) -> List[Dict]:
    \"\"\"{{ tool.function.description|capitalize }}\"\"\"
    pass
{% endfor %}
{%- for d in documents or [] %}
{% call document(loop.index0) %}{{ d.title }}
{{ d.text|indent(2) }}
{% endcall %}
{%- endfor %}
{%- for message in messages %}
{%- if message.role|lower == 'user' -%}
<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{{ message.content }}<|END_OF_TURN_TOKEN|>
{%- elif message.role|lower == 'system' -%}
<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>{{ message.content|trim }}<|END_OF_TURN_TOKEN|>
{%- elif message.role|lower == 'assistant' and message.tool_calls is defined -%}
<|CHATBOT_TOKEN|>Action: ```json
[
{%- for tc in message.tool_calls %}
{{ "    " }}{{ {"tool_name": tc.function.name, "parameters": tc.function.arguments}|tojson(indent=4)|indent(4) }}{{ "," if not loop.last }}
{%- endfor %}

]```<|END_OF_TURN_TOKEN|>
{%- elif message.role|lower == 'assistant' -%}
<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% generation %}{{ message.content }}{% endgeneration %}<|END_OF_TURN_TOKEN|>
{%- elif message.role|lower == 'tool' -%}
{{ '<results>\\n' + message.content|string + '\\n</results>' }}
{%- endif %}
{%- endfor %}{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}
""",
    "granite": """{%- if messages[0]['role'] == 'system' %}
     {%- set system_message = messages[0]['content'] %}
     {%- set loop_messages = messages[1:] %}
 {%- else %}
     {%- set system_message = "Knowledge Cutoff Date: April 2024.\\nToday's Date: " + strftime_now('%B %d, %Y') + ".\\nYou are an assistant." %}
     {%- if tools and documents %}
         {%- set system_message = system_message + " Tools and documents." %}
     {%- elif tools %}
         {%- set system_message = system_message + " Tools." %}
     {%- elif documents %}
         {%- set system_message = system_message + " Documents." %}
     {%- elif thinking %}
         {%- set system_message = system_message + " Think." %}
     {%- endif %}
     {%- if 'citations' in controls and documents %}
         {%- set system_message = system_message + " Cite." %}
     {%- endif %}
     {%- set loop_messages = messages %}
 {%- endif %}
 {{- '<|start_of_role|>system<|end_of_role|>' + system_message + '<|end_of_text|>
' }}
 {%- if tools %}
     {{- '<|start_of_role|>tools<|end_of_role|>' }}
     {{- tools | tojson(indent=4) }}
     {{- '<|end_of_text|>
' }}
 {%- endif %}
 {%- if documents %}
     {{- '<|start_of_role|>documents<|end_of_role|>' }}
     {%- for document in documents %}
         {{- 'Document ' + loop.index | string + '
' }}
         {{- document['text'] }}
         {%- if not loop.last %}
              {{- '

'}}
         {%- endif%}
     {%- endfor %}
     {{- '<|end_of_text|>
' }}
 {%- endif %}
 {%- for message in loop_messages %}
     {{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + (message['content'] or '') + '<|end_of_text|>
' }}
     {%- if loop.last and add_generation_prompt %}
         {{- '<|start_of_role|>assistant' }}
             {%- if controls %}
                 {{- ' ' + controls | tojson()}}
             {%- endif %}
         {{- '<|end_of_role|>' }}
     {%- endif %}
 {%- endfor %}""",
}

WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "the weather at a place", "parameters": {"type": "object", "properties": {
    "place": {"type": "string", "description": "City & country: \"Zürich\" <CH>"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
    "days": {"type": "array", "items": {"type": "integer"}, "description": None}, "box": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": ["number", "null"]}}, "required": ["x"]},
    "deep": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}}, "required": ["place"]}}}
SEARCH = {"type": "function", "function": {"name": "search", "description": "Search\nthe web", "parameters": {"type": "object", "properties": {"q": {"type": "string"}, "limit": {"type": "integer", "default": 10}, "exact": {"type": "boolean"}}}}}

CONVERSATIONS = {
    "one": [{"role": "user", "content": "Hi there!"}],
    "system": [{"role": "system", "content": "  You are helpful.\n"}, {"role": "user", "content": "  2+2?  "}, {"role": "assistant", "content": " 4 \n"}, {"role": "user", "content": "Grüße 😀\n\"quoted\" <b>&amp;</b>"}],
    "think": [{"role": "user", "content": "why?"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nbecause"}, {"role": "user", "content": "and?"}, {"role": "assistant", "content": "so", "reasoning_content": "\nlong thought\n"}],
    "tools": [{"role": "user", "content": "Weather?"},
              {"role": "assistant", "content": None, "tool_calls": [{"id": "abc123xyz", "type": "function", "function": {"name": "get_weather", "arguments": {"place": "Zürich", "days": [1, 2.5, -3e-7, 1e22], "box": {}, "flag": True, "none": None}}}]},
              {"role": "tool", "tool_call_id": "abc123xyz", "name": "get_weather", "content": "{\"t\": 21.5}"}, {"role": "assistant", "content": "21.5 °C"}, {"role": "user", "content": "Thanks"}],
    "tools-last": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather?"},
                   {"role": "assistant", "content": "", "thinking": "look it up", "tool_calls": [{"id": "abc123xyz", "type": "function", "function": {"name": "search", "arguments": {"q": "tab\there \u2028 \x7f"}}}]},
                   {"role": "tool", "tool_call_id": "abc123xyz", "content": "rain"}],
    "parts": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " what is it? "}]}],
    "wrong": [{"role": "assistant", "content": "me first"}, {"role": "assistant", "content": "again"}],
}

EXTRAS = [{}, {"add_generation_prompt": True}, {"tools": [WEATHER, SEARCH], "add_generation_prompt": True}, {"tools": [WEATHER], "documents": [{"title": "T", "text": "a\nb\n\nc"}, {"title": "U", "text": "d"}]},
          {"enable_thinking": False, "add_generation_prompt": True, "tools_in_user_message": False, "reasoning_effort": "high", "controls": {"citations": True, "length": "short"}, "thinking": True}]

VARIABLES = {
    "s": "Hello, Wörld! it's", "e": "", "n": 7, "m": -3, "z": 0, "f": 2.5, "g": -0.1, "big": 10000000000000000000000.0, "t": True, "u": False, "none": None,
    "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "d": {"b": 1, "a": {"x": [1, 2]}, "items": "shadow", "C": None}, "ll": [[1, "x"], [2, "y"]],
    "users": [{"name": "bob", "age": 3, "tags": ["x"]}, {"name": "Al", "age": 10, "tags": []}, {"name": "cy", "age": 3}], "multi": "one\n  two\n\nthree\n", "sp": " \t x y \n",
    "esc": "a\"b'c\\d\n<&>\x01é\u200b", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
}

# Each is rendered alone, as "{{ … }}".
EXPRESSIONS = [
    "s", "n", "f", "g", "big", "t", "none", "l", "w", "d", "ll", "users", "esc", "[s, esc, 1.0, none, true]", "(1,)", "(1, 2)", "()", "[]", "{}", "missing", "missing.x", "d.missing", "d['missing']", "d.missing.y",
    "s|upper", "s|lower", "s|title", "s|capitalize", "s|length", "sp|trim", "sp|trim(' ')", "s|trim('H!')", "s|replace('l', 'LL')", "s|replace('l', 'LL', 1)", "s|replace('', '-')", "s|reverse", "l|reverse|list", "s|list", "s|first", "s|last", "e|first", "l|first", "l|last", "l|sum", "l|min", "l|max", "w|min", "w|max", "[]|min",
    "w|sort", "w|sort(case_sensitive=true)", "w|sort(reverse=true)", "l|sort|join(',')", "w|unique|list", "users|sort(attribute='age')|map(attribute='name')|list", "users|sort(attribute='age', reverse=true)|map(attribute='name')|join(' ')", "w|join", "w|join(', ')", "l|join('-')", "users|join(', ', attribute='name')", "users|map(attribute='name')|map('upper')|list",
    "users|map(attribute='tags')|list", "users|map(attribute='tags', default='?')|list", "users|map(attribute='tags.0')|list", "users|selectattr('tags')|map(attribute='name')|list", "users|selectattr('age', 'equalto', 3)|list|length", "users|selectattr('age', '>', 3)|map(attribute='name')|first", "users|rejectattr('age', 'eq', 3)|list", "users|selectattr('tags', 'defined')|list|length",
    "l|select('odd')|list", "l|reject('even')|list", "l|select|list", "[0, 1, '', 'x']|select|list", "l|map('string')|list", "l|select('greaterthan', 1)|list", "w|select('in', ['a', 'b'])|list",
    "d|dictsort", "d|dictsort(reverse=true)", "{'b': 1, 'A': 2}|dictsort", "{'b': 1, 'A': 2}|dictsort(true)", "{'b': 2, 'a': 1}|dictsort(by='value')", "d|items|list", "d.items()|list", "d.keys()|list", "d.values()|list", "d.items", "d['items']", "d|list", "d|length", "d.get('b')", "d.get('q')", "d.get('q', 5)", "d.a.x[1]", "d.a.x[-1]", "d.a.x[5]", "'b' in d", "'q' not in d", "d == {'a': {'x': [1, 2]}, 'b': 1, 'items': 'shadow', 'C': none}",
    "d|tojson", "esc|tojson", "users|tojson(indent=2)", "users|tojson(indent=0)", "{'b': 1, 'a': 2}|tojson(sort_keys=true)", "esc|tojson(ensure_ascii=true)", "[1.0, 1e16, 1e15, 1e-5, 0.0001, 123456789.123]|tojson", "[]|tojson(indent=2)", "{}|tojson(indent=2)", "{'a': []}|tojson(indent=2)", "l|tojson(separators=(',', ':'))", "d|tojson(indent=1, separators=(',', ': '))", "(1, 2)|tojson", "{1: 2, true: 3, none: 4, 1.5: 5}|tojson", "missing|tojson", "'x'|tojson(indent='  ')",
    "n + 1", "n - m", "n * m", "n / 2", "n // 2", "m // 2", "n % 3", "m % 3", "m % -2", "n ** 2", "2 ** -1", "f * 2", "f // 1", "g % 1", "-n", "+n", "-f", "n / z", "n % z", "1e3", "1_000", "0.1 + 0.2", "1 / 3", "10 / 5", "7 // 2.0", "-7 // 2.0", "2 ** 3 ** 2", "-2 ** 2", "t + 1", "t * 3", "'ab' * 3", "3 * 'ab'", "[1] * 2", "[1] + [2]", "(1,) + (2,)", "'a' + 'b'", "'a' + 1", "1 + 'a'", "'a' ~ 1 ~ none ~ true", "e ~ missing", "s % 1", "'%s is %d' % ('x', 3)", "'%.2f' % f", "'%05d|%-4s|%x' % (42, 'ab', 255)", "'%s' % 'x'", "'100%%' % ()", "missing + 1",
    "n > 3", "n >= 7 and f < 3", "n > 3 or missing.x", "not n", "not e", "n == 7.0", "t == 1", "'a' < 'b'", "[1, 2] < [1, 3]", "1 < 2 < 3", "1 < 3 < 2", "none == none", "missing == missing", "none < 1", "'1' == 1", "n in l", "3 in l", "'ell' in s", "1 in s", "'x' in none", "n if t else f", "n if u else f", "n if u", "'a' if none else 'b' if e else 'c'", "(n if t) + 1",
    "s[0]", "s[-1]", "s[100]", "s[1:4]", "s[:3]", "s[-3:]", "s[::-1]", "s[::2]", "s[7:2:-1]", "l[1:]", "l[::-1]", "l[:-1]", "l[5:]", "s[7:9]", "l[0:2:1]", "messages[::-1]", "(1, 2, 3)[1:]", "l[-100:100]", "s[-100:2]", "s[::0]", "l['x']", "n[0]", "s.nope", "none.x", "none[0]",
    "s.upper()", "s.lower()", "s.title()", "s.capitalize()", "s.swapcase()", "sp.strip()", "sp.lstrip()", "sp.rstrip()", "s.strip('H!')", "s.lstrip('Hel')", "s.rstrip(\"st'\")", "s.split()", "sp.split()", "s.split(', ')", "s.split('l')", "s.split('l', 1)", "s.split(none, 1)", "s.rsplit('l', 1)", "s.split('')", "multi.splitlines()", "multi.splitlines(true)", "s.startswith('He')", "s.startswith(('x', 'He'))", "s.endswith(\"'s\")", "s.replace('l', '')", "s.replace('o', '0', 1)", "s.find('l')", "s.find('ö')", "s.find('ld')", "s.rfind('l')", "s.count('l')", "s.index('q')", "', '.join(w)", "', '.join(l)", "''.join([])",
    "s.isalpha()", "'abc'.isalpha()", "'12'.isdigit()", "''.isdigit()", "'a1'.isalnum()", "' '.isspace()", "'AB'.isupper()", "'ab1'.islower()", "'1'.islower()", "'x'.ljust(3) ~ '|'", "'x'.rjust(3, '.')", "'x'.center(4, '-')", "'ab'.center(5)", "'abc'.removeprefix('a')", "'abc'.removesuffix('bc')", "s.partition(', ')", "'{} {1}'.format(1, 2) if false else '{} {}'.format(1, 'x')", "'{a}-{b}'.format(a=1, b=n)", "'{{}}'.format()", "s.title()", "l.append(1)", "d.update({})", "d.pop('b')", "l.index(1)", "l.count(3)",
    "'42'|int", "'4.7'|int", "'x'|int", "'x'|int(5)", "'ff'|int(base=16)", "f|int", "m|abs", "g|abs", "'1.5'|float", "'x'|float", "n|float", "f|round", "2.5|round", "3.5|round", "2.675|round(2)", "1234.5|round(-2)", "g|round(0, 'floor')", "g|round(method='ceil')", "7|round", "f|round|int", "n|string", "none|string", "l|string", "missing|string",
    "missing|default('x')", "none|default('x')", "e|default('x', true)", "n|default(1)", "missing|d", "missing|default", "missing|length", "missing|list", "missing|join", "missing|upper", "missing|trim", "none|length", "n|length",
    "multi|indent", "multi|indent(2)", "'a\\r\\nb\\u2028\\n\\nc\\n'|indent(1)", "''|indent(2, true, true)", "'x\\n'|indent(2, true, true)", "'\\n\\n'|indent(2, true)", "multi|indent(2, true)", "multi|indent(2, false, true)", "multi|indent('> ')", "multi|wordcount", "esc|e", "esc|safe", "'%s-%s'|format(1, 2)", "[1, 2, 3, 4, 5]|batch(2)|list", "[1, 2, 3]|batch(2, 'x')|list", "d|attr('b')", "'hello world-foo (bar)'|title", "\"they're bill's\"|title", "s|count",
    "s is string", "n is number", "n is integer", "f is float", "t is integer", "t is number", "t is boolean", "none is none", "missing is defined", "n is defined", "missing is undefined", "l is sequence", "d is sequence", "s is sequence", "n is sequence", "l is iterable", "d is iterable", "s is iterable", "n is iterable", "missing is iterable", "d is mapping", "l is mapping", "n is odd", "n is even", "n is divisibleby 7", "n is divisibleby(2)", "t is true", "u is false", "n is true", "s is upper", "'AB' is upper", "'ab' is lower", "n is eq 7", "n is not eq 7", "n is equalto(7)", "n is gt 3", "n is le(3)", "n in [7]", "n is in [7]", "n is sameas n", "s is not none", "not missing is defined", "range is callable", "n is nosuchtest", "n|nosuchfilter", "nosuchfunction()", "n()",
    "range(3)|list", "range(1, 4)|list", "range(5, 0, -2)|list", "range(3)|length" , "dict(a=1, b=2)", "dict(x=1)", "namespace(a=1).a", "namespace(a=1).b", "raise_exception('oh no')", "true", "True", "None", "\"a\\tb\\u00e9\\x41\\101\\q\\\n\"", "'a' 'b'", "'it\\'s'", "l|map('nosuch')|list", "users|map(attribute='name')|length", "users|selectattr('age') is string", "1.5", "d.a.x|first", "users[0].name", "users.0.name", "users[0]['tags'][0]", "users[1].tags[0] is defined", "{'a': {'b': 1}}.a.b", "[[1, 2], [3]]|sum(start=[])", "[1, 2]|map('float')|sum", "(l|length) * 2", "l|length * 2", "l|length", "not l|length > 5", "'a' is string and n is number", "(1, 2) == (1, 2)", "[1] == (1,)", "1 in (1, 2)", "65", "1 if 0 else none", "[none, missing]|join('-')", "['a', 1, none]|join('-')", "[x]|list" , "'ß'|upper", "'İ'|lower", "'ǆ'|title", "'ΑΒ'|lower", "'😀'|length", "'😀a'[1]", "'é' in 'é'",
]

STATEMENTS = [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }} {% endfor %}", "{% for x in [] %}a{% else %}b{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for a, b in ll %}{{ a ~ b }}{% endfor %}", "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a + b + c }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }} {% endfor %}", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}",
    "{% set x = 1 %}{% for y in l %}{% set x = x + y %}{{ x }} {% endfor %}{{ x }}", "{% set ns = namespace(x=1) %}{% for y in l %}{% set ns.x = ns.x + y %}{% endfor %}{{ ns.x }}", "{% if t %}{% set q = 3 %}{% endif %}{{ q }}", "{% set a, b = 1, 2 %}{{ b }}{{ a }}", "{% set x %}a{{ n }}b{% endset %}[{{ x }}]", "{% set x | upper %}abc{% endset %}{{ x }}", "{% set x | replace('a', 'b') | upper %}abc{% endset %}{{ x }}",
    "{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m() }}{{ m(1, 2, 3) }}", "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}[{{ caller() }}{{ a }}]{% endmacro %}{% call m(5) %}body{{ n }}{% endcall %}", "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a + b }}{% endcall %}",
    "{% macro fact(k) %}{{ k if k < 2 else k * (fact(k - 1)|int) }}{% endmacro %}{{ fact(6) }}", "{% macro m() %}{{ n }}{% endmacro %}{% set n = 9 %}{{ m() }}", "{% filter upper %}abc{{ s }}{% endfilter %}", "{% with a = 1, b = n %}{{ a + b }}{% endwith %}{{ a }}", "{% raw %}{{ x }}{% y %}{% endraw %}", "{% raw -%}  {{ x }} {%- endraw %} z", "a {# c #} b", "a\n  {# c #}\nb", "a\n  {% if t %}\n  b\n  {% endif %}\nc\n", "  {% if t %}x{% endif %}  \n y", "{{ n }}\n{{ n }}\n\n", "a  {{- n -}}  b", "a\n{%- if t -%}\n b \n{%- endif -%}\n c",
    "a\n    {%+ if t %}b{% endif +%}\nc", "{{ n }}", "{% if t %}\n\n{% endif %}x", "\n\n{{ n }}", "{%- for x in l -%}\n {{ x }}\n{%- endfor -%}", "{% for x in l %}\n{{ x }}\n{% endfor %}\n", "{% if n > 5 and f < 3 %}1{% elif t %}2{% else %}3{% endif %}{% if z %}1{% elif e %}2{% else %}3{% endif %}", "{% generation %}g{{ n }}{% endgeneration %}", "{{ '{{' }} {{ '%}' }} {{ {'a': {'b': 1}} }}", "line1\r\nline2\rline3\n", "{% for m in messages %}{{ m.role }}: {{ m['content'] }}\n{% endfor %}",
    "{% for i in range(3) %}{% for j in range(2) %}{{ loop.index }}{{ i }}{{ j }} {% endfor %}{{ loop.index }}{% endfor %}", "{% set xs = l|map('string') %}{{ xs|join }}{{ xs|join }}", "{% if users|selectattr('age', 'equalto', 99) %}gen{% endif %}", "{% set first = users|selectattr('age', 'equalto', 3)|first %}{{ first.name }}", "{% set d2 = dict(a=1) %}{{ d2.a }}", "{% for c in 'aé😀' %}{{ c }}.{% endfor %}", "{% for x in none %}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in missing %}a{% else %}b{% endfor %}", "{% set d.x = 1 %}", "{% set ns = namespace() %}{% set ns._x = 1 %}",
    "{% if %}", "{% endif %}", "{% for %}", "{{ }}", "{{ 1 + }}", "{{ (1 }}", "{% foo %}", "{{ 'a }}", "{% if t %}", "{# x", "{{ a b }}", "{% for x in l %}{% endif %}", "{% break %}", "{{ x is }}", "{{ 1 | }}", "{% set 1 = 2 %}", "{% macro %}{% endmacro %}", "{{ f(a=1, 2) }}",
    "x", "{% set content = 'x' %}{% macro show() %}{{ content }}{% endmacro %}{% for m in messages %}{% set content = m.content %}{{ content }}{{ show() }}{% endfor %}", "{%set x=1%}{{x}}{%if x==1%}y{%endif%}", "{{- 'a' -}}{{- ' b ' -}}", "{% for x in l -%}\n  {{ x }},\n{%- endfor %}", "y",
]
