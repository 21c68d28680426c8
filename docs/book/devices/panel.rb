#!/usr/bin/env ruby
# frozen_string_literal: true

# A device written from protocol.md with Ruby's standard library: it logs in by SCRAM over TLS, follows topics, prints items and
# notifications, acknowledges these, answers pings, and reconnects with back-off.
#
#   CARILLON_SECRET=SECRET ruby panel.rb kitchen@push.example HOST:PORT self-signed.crt TOPIC...

require "json"
require "openssl"
require "rexml/document"
require "rexml/parsers/pullparser"
require "securerandom"
require "socket"
require "timeout"

# The stream ended; `retry_after` is in how many seconds to come back, where the server said so.
class Ended < StandardError
  attr_reader :retry_after

  def initialize(condition, retry_after = nil)
    super(condition)
    @retry_after = retry_after
  end
end

# The server refused the login: trying again does not help.
class Refused < StandardError; end

# What the parser reads: the stream's characters are UTF-8, and it cannot go back.
Source = Struct.new(:socket) do
  def read(*limit) = socket.read(*limit)&.force_encoding("UTF-8")
  def readline(*limit) = socket.readline(*limit).force_encoding("UTF-8")
  def eof? = socket.eof?
  def pos = raise(IOError, "a stream has no position")
end

# One connection: TLS, and elements that go to and fro.
class Stream
  SILENCE_S = 120

  def initialize(host, port, domain, certificate)
    @domain = domain
    tls = OpenSSL::SSL::SSLContext.new
    tls.verify_mode = OpenSSL::SSL::VERIFY_PEER
    tls.verify_hostname = true
    tls.cert_store = OpenSSL::X509::Store.new.add_file(certificate)
    @socket = OpenSSL::SSL::SSLSocket.new(Socket.tcp(host, port, connect_timeout: 10), tls)
    @socket.sync_close = true
    @socket.hostname = domain
    Timeout.timeout(10) { @socket.connect }
  end

  # Begins a stream, the second one after SASL too; returns its features.
  def open
    send("<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' " \
         "to='#{@domain}' version='1.0'>")
    @parser = REXML::Parsers::PullParser.new(Source.new(@socket))
    event = @parser.pull until event&.start_element?
    @root = REXML::Element.new(event[0])
    @root.add_attributes(event[1])
    receive
  end

  def send(xml) = @socket.write(xml)

  # The next element; raises when the stream ends, or the connection is silent for long.
  def receive
    element = Timeout.timeout(SILENCE_S) { read }
    return element unless element.expanded_name == "stream:error"

    children = element.elements.to_a
    after = children.find { |child| child.name == "retry-after" }
    raise Ended.new(children.first.name, after && after.attributes["seconds"].to_i)
  end

  # Asks, and returns the answer; what comes meanwhile is given to the block.
  def ask(id, xml)
    send(xml)
    loop do
      element = receive
      return element if element.name == "iq" && element.attributes["id"] == id

      yield element
    end
  end

  def close = @socket.close

  private

  def read
    @root.each_element { |read_before| @root.delete(read_before) }
    element = @root
    loop do
      event = @parser.pull
      if event.start_element?
        element = element.add_element(event[0], event[1])
      elsif event.text?
        element << REXML::Text.new(event[0], true, nil, true)
      elsif event.cdata?
        element << REXML::CData.new(event[0])
      elsif event.end_element? || event.end_document?
        raise Ended, "closed" if element.equal?(@root)
        return element if element.parent.equal?(@root)

        element = element.parent
      end
    end
  end
end

# SCRAM-SHA-256 without channel binding.
class Scram
  def initialize(user, secret)
    @secret = secret
    @nonce = SecureRandom.base64(18)
    @first = "n=#{user.gsub('=', '=3D').gsub(',', '=2C')},r=#{@nonce}"
  end

  def first = encode("n,,#{@first}")

  def last(challenge)
    challenge = challenge.unpack1("m")
    fields = challenge.split(",").to_h { |field| field.split("=", 2) }
    raise Refused, "not the server's challenge" unless fields["r"].start_with?(@nonce) && fields["i"].to_i >= 4096

    salted = OpenSSL::KDF.pbkdf2_hmac(@secret, salt: fields["s"].unpack1("m"), iterations: fields["i"].to_i, length: 32, hash: "SHA256")
    client_key = hmac(salted, "Client Key")
    final = "c=biws,r=#{fields['r']}"
    message = "#{@first},#{challenge},#{final}"
    signature = hmac(OpenSSL::Digest::SHA256.digest(client_key), message)
    @server_signature = hmac(hmac(salted, "Server Key"), message)
    proof = client_key.bytes.zip(signature.bytes).map { |a, b| a ^ b }.pack("C*")
    encode("#{final},p=#{encode(proof)}")
  end

  def check(success)
    raise Refused, "the server does not know the secret" unless success.unpack1("m") == "v=#{encode(@server_signature)}"
  end

  private

  def hmac(key, data) = OpenSSL::HMAC.digest("SHA256", key, data)
  def encode(bytes) = [bytes].pack("m0")
end

# What the device does with a stream.
class Panel
  SASL = "urn:ietf:params:xml:ns:xmpp-sasl"

  def initialize(jid, secret, topics)
    @jid = jid
    @user, @domain = jid.split("@", 2)
    @secret = secret
    @topics = topics
    @seen = []
  end

  def run(stream)
    log_in(stream)
    stream.send("<presence/>")
    @topics.each_with_index { |topic, i| subscribe(stream, topic, "topic-#{i}") }
    loop { take(stream, stream.receive) }
  end

  private

  def log_in(stream)
    stream.open
    scram = Scram.new(@user, @secret)
    stream.send("<auth xmlns='#{SASL}' mechanism='SCRAM-SHA-256'>#{scram.first}</auth>")
    challenge = expect(stream.receive, "challenge")
    stream.send("<response xmlns='#{SASL}'>#{scram.last(challenge.text)}</response>")
    scram.check(expect(stream.receive, "success").text)
    stream.open
    bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>panel</resource></bind>"
    bound = stream.ask("bind", "<iq type='set' id='bind'>#{bind}</iq>") { |_| nil }
    puts "online #{bound.elements['bind/jid'].text}"
  end

  def expect(element, name)
    return element if element.name == name

    condition = element.elements[1]&.name
    raise %w[temporary-auth-failure account-disabled].include?(condition) ? Ended.new(condition) : Refused.new(condition)
  end

  def subscribe(stream, topic, id)
    node = topic.encode(xml: :attr)
    request = "<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node=#{node} jid='#{@jid}'/></pubsub>"
    answer = stream.ask(id, "<iq type='set' id='#{id}' to='pubsub.#{@domain}'>#{request}</iq>") { |other| take(stream, other) }
    puts "#{answer.attributes['type'] == 'result' ? 'following' : 'cannot follow'} #{topic}"
  end

  def take(stream, element)
    case element.name
    when "message" then message(stream, element)
    when "iq" then answer(stream, element) if %w[get set].include?(element.attributes["type"])
    end
  end

  def message(stream, element)
    notification(stream, element) if element.elements["notification"]
    items = element.elements["event/items"] or return
    items.each_element do |item|
      puts "#{items.attributes['node']} #{item.name} #{item.attributes['id']} #{payload(item)}".rstrip
    end
  end

  # Shown first, acknowledged then: what is lost in between comes again.
  def notification(stream, element)
    id = element.attributes["id"]
    puts "notification #{payload(element)}" unless @seen.include?(id)
    @seen = (@seen + [id]).last(100)
    return unless element.elements["request"]

    stream.send("<message to='#{element.attributes['from']}'><received xmlns='urn:xmpp:receipts' id='#{id}'/></message>")
  end

  def payload(element) = element.elements["json"]&.texts&.map(&:value)&.join

  def answer(stream, request)
    to = "id=#{request.attributes['id'].encode(xml: :attr)} to=#{request.attributes['from'].encode(xml: :attr)}"
    return stream.send("<iq type='result' #{to}/>") if request.elements["ping"]

    stream.send("<iq type='error' #{to}><error type='cancel'>" \
                "<service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>")
  end
end

# What a new connection does not change soon.
NOT_BEFORE_S = { "conflict" => 300, "account-disabled" => 3600, "host-unknown" => 3600, "host-gone" => 3600 }.freeze

# How long to wait before the next connection.
class BackOff
  LEAST_S = 2.0
  MOST_S = 300.0

  def initialize
    @most = LEAST_S
  end

  def wait_s(lasted_s, least_s)
    @most = LEAST_S if lasted_s > 60
    wait_s = least_s + rand * @most
    @most = [@most * 2, MOST_S].min
    wait_s
  end
end

if $PROGRAM_NAME == __FILE__
  jid, address, certificate, *topics = ARGV
  host, port = address.split(/:(?=\d+\z)/)
  $stdout.sync = true
  panel = Panel.new(jid, ENV.fetch("CARILLON_SECRET"), topics)
  back_off = BackOff.new
  loop do
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    stream = Stream.new(host, port.to_i, jid.split("@").last, certificate)
    panel.run(stream)
  rescue Ended, SystemCallError, IOError, SocketError, OpenSSL::SSL::SSLError, Timeout::Error, REXML::ParseException => error
    stream&.close
    least = error.is_a?(Ended) && error.retry_after || NOT_BEFORE_S.fetch(error.message, 0)
    wait = back_off.wait_s(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, least)
    puts "offline: #{error.message}; back in #{wait.round(1)} s"
    sleep wait
  rescue Refused => error
    abort "refused: #{error.message}"
  end
end
