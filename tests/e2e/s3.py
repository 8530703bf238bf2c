"""A few lines of S3 that owe nothing to the program under test."""
import datetime
import hashlib
import hmac
import os
import urllib.parse
import urllib.request
import xml.etree.ElementTree

SPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


def signed(url):
    """A GET with SigV4 and the keys of the environment."""
    now = datetime.datetime.now(datetime.timezone.utc)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    region = os.environ.get("AWS_REGION", "us-east-1")
    parts = urllib.parse.urlsplit(url)
    empty = hashlib.sha256(b"").hexdigest()
    headers = {"host": parts.netloc, "x-amz-content-sha256": empty,
               "x-amz-date": stamp}
    names = ";".join(sorted(headers))
    request = "\n".join(
        ["GET", parts.path, parts.query,
         *(f"{name}:{headers[name]}" for name in sorted(headers)),
         "", names, empty])
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                      hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
    for each in (day, region, "s3", "aws4_request", text):
        key = hmac.new(key, each.encode(), hashlib.sha256).digest()
    headers["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={os.environ['AWS_ACCESS_KEY_ID']}/"
        f"{scope}, SignedHeaders={names}, Signature={key.hex()}")
    del headers["host"]
    return urllib.request.Request(url, headers=headers)


def keys(endpoint, bucket, prefix):
    """All keys that begin with `prefix` (at most a page of them)."""
    query = urllib.parse.urlencode(
        sorted({"list-type": "2", "prefix": prefix}.items()),
        quote_via=urllib.parse.quote, safe="")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(signed(f"{endpoint}/{bucket}?{query}")) as answer:
        root = xml.etree.ElementTree.fromstring(answer.read())
    return [each.findtext(SPACE + "Key")
            for each in root.iter(SPACE + "Contents")]
