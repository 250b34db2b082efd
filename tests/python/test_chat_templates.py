"""Chat templates rendered as transformers and jinja2 render them: whole templates in the style of current families, single expressions, statements."""
import datetime
import itertools
import time

import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

import chat_templates as cases
import text_library as ait

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
TOKENIZER = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **SPECIAL)


def local_now():
    return int(time.time()) + int(datetime.datetime.now().astimezone().utcoffset().total_seconds())


def transformers_text(template, messages, extra):
    try:
        return TOKENIZER.apply_chat_template(messages, chat_template=template, tokenize=False, **extra)
    except Exception as e:  # noqa: BLE001
        return e


def jinja_text(template, variables):
    try:
        return chat_template_utils._compile_jinja_template(template).render(**variables)
    except Exception as e:  # noqa: BLE001
        return e


def check(want, template, variables):
    if isinstance(want, Exception):
        with pytest.raises(ait.AitError) as e:
            print(repr(want), "but:", repr(ait.render(template, variables)))
        assert "line " in str(e.value)
        return
    assert ait.render(template, variables, now=local_now()) == want


@pytest.mark.parametrize("family,conversation", itertools.product(cases.FAMILIES, cases.CONVERSATIONS))
def test_family(family, conversation):
    template, messages = cases.FAMILIES[family], cases.CONVERSATIONS[conversation]
    rendered = 0
    for extra in cases.EXTRAS:
        want = transformers_text(template, messages, extra)
        rendered += isinstance(want, str)
        check(want, template, {"messages": messages, **SPECIAL, **extra})
    assert rendered or conversation in ("wrong", "parts", "think", "tools", "tools-last")


@pytest.mark.parametrize("expression", cases.EXPRESSIONS)
def test_expression(expression):
    template = "{{ " + expression + " }}"
    want = jinja_text(template, cases.VARIABLES)
    if isinstance(want, str) and " object at 0x" in want:
        pytest.skip("the address of an object")
    check(want, template, cases.VARIABLES)


@pytest.mark.parametrize("template", cases.STATEMENTS)
def test_statement(template):
    check(jinja_text(template, cases.VARIABLES), template, cases.VARIABLES)


def test_strftime():
    for form in ("%Y-%m-%d", "%d %b %Y", "%B %d, %Y", "%A"):
        template = "{{ strftime_now('" + form + "') }}"
        assert ait.render(template, {}, now=local_now()) == datetime.datetime.now().strftime(form)


def test_limits():
    for template, options in [("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", {}),
                              ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", {}), ("{{ 'x' * 1000000000 }}", {}), ("{{ 2 ** 100 }}", {}),
                              ("{% set ns = namespace(x='ab') %}{% for i in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}", {}),
                              ("{% for i in range(1000) %}xxxxxxxxxx{% endfor %}", {"max_output": 1000}), ("{% for i in range(1000) %}x{% endfor %}", {"max_steps": 100}),
                              ("{{ " + "(" * 500 + "1" + ")" * 500 + " }}", {}), ("{% if t %}" * 500 + "{% endif %}" * 500, {})]:
        with pytest.raises(ait.AitError):
            ait.render(template, {}, **options)
