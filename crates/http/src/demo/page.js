// Made of sdk/match-typescript by its demo/build.
var FIELD={width:640,height:400};var SIZE=36;var TICKS=1200;var UP=1;var DOWN=2;var LEFT=4;var RIGHT=8;var WALLS=[{x:180,y:90,width:40,height:150},{x:420,y:160,
width:40,height:150}];var CHASING=11;var RUNNING=10;var CAUGHT=20;function begin(seed){const y=(FIELD.height-SIZE)/2;return{tick:0,it:Number(seed&1n),stands:CAUGHT,
squares:[{x:60,y,score:0},{x:FIELD.width-60-SIZE,y,score:0}]}}var overlap=(a,x,y)=>x<a.x+a.width&&x+SIZE>a.x&&y<a.y+a.height&&y+SIZE>a.y;var isFree=(x,y)=>x>=0&&
y>=0&&x<=FIELD.width-SIZE&&y<=FIELD.height-SIZE&&!WALLS.some(wall=>overlap(wall,x,y));function slide(square,dx,dy){for(let left=Math.abs(dx+dy);left>0;left--){const[
x,y]=[square.x+Math.sign(dx),square.y+Math.sign(dy)];if(!isFree(x,y))return;[square.x,square.y]=[x,y]}}function step(before,inputs2){const squares=[{...before.squares[0]},
{...before.squares[1]}];const game2={...before,tick:before.tick+1,stands:Math.max(before.stands-1,0),squares};for(const[seat2,square]of squares.entries()){const isIt=seat2===
game2.it;if(!isIt)square.score++;if(isIt&&game2.stands>0)continue;const held2=inputs2[seat2]??0;const[dx,dy]=[Number((held2&RIGHT)!==0)-Number((held2&LEFT)!==0),
Number((held2&DOWN)!==0)-Number((held2&UP)!==0)];const speed=isIt?CHASING:RUNNING;const way=dx!==0&&dy!==0?Math.floor(speed*7/10):speed;slide(square,dx*way,0);slide(
square,0,dy*way)}const[one,other]=squares;if(game2.stands===0&&overlap({...one,width:SIZE,height:SIZE},other.x,other.y))[game2.it,game2.stands]=[1-game2.it,CAUGHT];
return game2}function hash({tick,it,stands,squares}){const values=[tick,it,stands,...squares.flatMap(({x,y,score:score2})=>[x,y,score2])];return values.reduce((hash2,value)=>Math.
imul(hash2^value,16777619)>>>0,2166136261)}function winner({squares:[one,other]}){return one.score===other.score?void 0:Number(other.score>one.score)}var STEP=20;var[COLUMNS,ROWS]=[Math.floor((FIELD.width-SIZE)/STEP)+1,Math.floor((FIELD.height-SIZE)/STEP)+1];var WAYS=[0,UP,DOWN,LEFT,RIGHT,UP|LEFT,UP|RIGHT,DOWN|
LEFT,DOWN|RIGHT];var AHEAD=5;function around({x,y}){const[column,row]=[Math.floor(x/STEP),Math.floor(y/STEP)];const corners=[[column,row],[column+1,row],[column,
row+1],[column+1,row+1]];return corners.filter(([c,r])=>c<COLUMNS&&r<ROWS&&isFree(c*STEP,r*STEP)).map(([c,r])=>r*COLUMNS+c)}function distances(to){const far=new Array(
COLUMNS*ROWS).fill(Number.POSITIVE_INFINITY);const open=around(to);for(const point of open)far[point]=0;for(let next=0;next<open.length;next++){const point=open[next];
const[column,row]=[point%COLUMNS,Math.floor(point/COLUMNS)];for(const[c,r]of[[column-1,row],[column+1,row],[column,row-1],[column,row+1]]){const other=r*COLUMNS+
c;if(c<0||r<0||c>=COLUMNS||r>=ROWS||far[other]<=far[point]+1||!isFree(c*STEP,r*STEP))continue;far[other]=far[point]+1;open.push(other)}}return far}function bot(game2,seat2){
const other=game2.squares[1-seat2];const far=distances(other);const chases=game2.it===seat2;const value=way=>{let then=game2;for(let ahead=0;ahead<AHEAD;ahead++)
then=step({...then,it:game2.it,stands:0},seat2===0?[way,0]:[0,way]);const square=then.squares[seat2];const steps=Math.min(...around(square).map(point=>far[point]));
const apart=Math.hypot(square.x-other.x,square.y-other.y)/STEP;return chases?-steps-apart/4:steps+apart/4};const values=WAYS.map(value);return WAYS[values.indexOf(
Math.max(...values))]}var HALF_MS=25;var Drawing=class{constructor(canvas){this.canvas=canvas;this.#context=canvas.getContext("2d")}canvas;#context;#shown=[];#at=0;at(event){const{left,
top,width,height}=this.canvas.getBoundingClientRect();return{x:(event.clientX-left)/width*FIELD.width,y:(event.clientY-top)/height*FIELD.height}}draw(player2,now,showsConfirmed2){
const{confirmed,predicted,seat:seat2}=player2;if(!confirmed)return;const context=this.#context;const scale=Math.max(1,Math.round(this.canvas.clientWidth*devicePixelRatio/
FIELD.width*4)/4);if(this.canvas.width!==FIELD.width*scale)[this.canvas.width,this.canvas.height]=[FIELD.width*scale,FIELD.height*scale];context.setTransform(scale,
0,0,scale,0,0);const style=getComputedStyle(this.canvas);const color=name=>style.getPropertyValue(name);context.fillStyle=color("--field");context.fillRect(0,0,
FIELD.width,FIELD.height);context.fillStyle=color("--wall");for(const{x,y,width,height}of WALLS)context.fillRect(x,y,width,height);const left=.5**((now-this.#at)/
HALF_MS);this.#at=now;for(const[at,goal]of(predicted??confirmed).squares.entries()){const shown=this.#shown[at]??goal;this.#shown[at]={x:goal.x+(shown.x-goal.x)*
left,y:goal.y+(shown.y-goal.y)*left};this.#square(this.#shown[at],color(at===seat2?"--own":"--other"),at===confirmed.it?color("--it"):void 0);this.#label(this.#shown[at],
at===seat2?"you":"other",color("--line"));if(showsConfirmed2)this.#outline(confirmed.squares[at],color("--line"))}}#square({x,y},color,ring){const context=this.#context;
if(ring){context.strokeStyle=ring;context.lineWidth=6;context.strokeRect(x-3,y-3,SIZE+6,SIZE+6)}context.fillStyle=color;context.fillRect(x,y,SIZE,SIZE)}#label({
x,y},text,color){const context=this.#context;const size=13*FIELD.width/Math.max(this.canvas.clientWidth,1);context.fillStyle=color;context.font=`${size}px syste\
m-ui, sans-serif`;context.textAlign="center";const half=context.measureText(text).width/2+2;const middle=Math.min(Math.max(x+SIZE/2,half),FIELD.width-half);context.
fillText(text,middle,y>2*size?y-size/2:y+SIZE+1.4*size)}#outline({x,y},color){const context=this.#context;context.strokeStyle=color;context.lineWidth=1.5;context.
setLineDash([4,3]);context.strokeRect(x,y,SIZE,SIZE);context.setLineDash([])}};var MODES=["relay","lockstep","authoritative"];var STATES=["away","here","left"];var REASONS=["finished","forfeit","duration","not-joined","shutdown","module"];
var ERRORS=["","malformed","too-long","bad-token","expired-token","no-match","left","replaced","not-joined","too-far","too-old","idle","too-slow","elsewhere","s\
hutdown"];var Malformed=class extends Error{name="Malformed"};var JOIN=1;var INPUTS=2;var HASH=3;var PING=4;var PAUSE=5;var CONTINUE=6;var FORFEIT=7;var OUTCOME=8;
var STATE=9;var WELCOME=16;var TICK=17;var SEAT=18;var DESYNC=19;var PONG=20;var CLOCK=21;var ENDED=22;var ERROR=23;var UPDATE=24;var SNAPSHOT=25;var WANTED=26;
var FRAME_BYTES_MAX=64*1024;var INPUT_BYTES_MAX=512;var SEATS_MAX=64;var NOBODY=255;function seatsOf(mask){return Array.from({length:SEATS_MAX},(_,seat2)=>seat2).
filter(seat2=>mask>>BigInt(seat2)&1n)}function wrong(why="a field has a value that means nothing"){throw new Malformed(why)}function acknowledges({ack,missing},tick){
const behind=ack-tick;return behind===0||behind>32||behind>0&&(missing>>>behind-1&1)===0}var Reader=class{constructor(bytes){this.bytes=bytes}bytes;#at=0;left=()=>this.
bytes.length-this.#at;rest=()=>this.take(this.left()).slice();byte=()=>this.take(1)[0];word=words=>words[this.byte()]||wrong();fixed=bytes=>this.take(bytes).reduceRight(
(number,byte)=>number<<8n|BigInt(byte),0n);take(length){if(length>this.left())wrong("the frame ends too early");this.#at+=length;return this.bytes.subarray(this.#at-
length,this.#at)}varint(){let number=0n;for(let shift=0n;;shift+=7n){const byte=this.byte();if(shift===63n&&byte>1)wrong("a number is too large");number|=BigInt(
byte&127)<<shift;if(byte>=128)continue;if(byte===0&&shift>0n)wrong("a number is not written in the shortest way");return number}}u32(){const number=this.varint();
if(number>0xffffffffn)wrong("a number is too large");return Number(number)}};function cut(stream){let end=0;while(end<stream.length&&stream[end]>=128&&end<9)end++;
if(end===stream.length)return void 0;const length=new Reader(stream.subarray(0,end+1)).varint();if(length>FRAME_BYTES_MAX)wrong("the frame is longer than it may\
 be");const behind=end+1+Number(length);return behind>stream.length?void 0:[stream.subarray(end+1,behind),stream.subarray(behind)]}function read(bytes){const from=new Reader(
bytes);const kind=from.u32();const tick=from.u32();const folded=from.varint();const ack=BigInt(tick)-(folded>>1n^-(folded&1n));if(ack<0n||ack>0xffffffffn)wrong(
"a number is too large");const frame={tick,ack:Number(ack),missing:from.u32(),...body(kind,from)};if(from.left()>0)wrong("bytes follow the end of the frame");return frame}
function body(kind,from){switch(kind){case WELCOME:return{kind:"welcome",welcome:welcome(from)};case TICK:return{kind:"tick",...inputs(from)};case SEAT:return{kind:"\
seat",seat:from.byte(),state:from.word(STATES)};case DESYNC:return{kind:"desync",minority:from.varint(),hash:Number(from.fixed(4))};case PONG:return{kind:"pong",
stamp:from.rest()};case CLOCK:return{kind:"clock",runs:from.word(["0","1"])==="1",seat:[from.byte()].find(seat2=>seat2!==NOBODY)};case ENDED:return{kind:"ended",
reason:from.word(REASONS),seats:from.varint(),outcome:from.rest()};case ERROR:return{kind:"error",code:from.word(ERRORS),text:new TextDecoder().decode(from.rest())};case UPDATE:
return{kind:"update",update:from.rest()};case SNAPSHOT:return{kind:"snapshot",snapshot:from.rest()};case WANTED:return{kind:"wanted",whole:from.word(["0","1"])===
"1"};default:wrong(`no frame is of kind ${kind}`)}}function welcome(from){const[seat2,seats,mode,runs,tickRate,inputDelay]=[from.byte(),from.byte(),from.word(MODES),
from.byte(),from.byte(),from.byte()];const[present,inputBytesMax,holdMs,seed]=[from.varint(),from.u32(),from.u32(),from.fixed(8)];if(runs>1||seats>SEATS_MAX||seat2>=
seats&&seat2!==NOBODY||tickRate===0)wrong();return{seat:seat2,seats,mode,runs:runs===1,tickRate,inputDelay,present,inputBytesMax,holdMs,seed}}function inputs(from){
const[given,repeated,even]=[from.varint(),from.varint(),from.u32()];if(given&repeated)wrong();const inputs2=new Map;for(const seat2 of seatsOf(given)){const length=even===
0?from.u32():even-1;if(length>INPUT_BYTES_MAX)wrong("an input is longer than it may be");inputs2.set(seat2,from.take(length).slice())}return{given,repeated,inputs:inputs2}}
var varint=number=>number<128?[number]:[number%128|128,...varint(Math.floor(number/128))];var u32=number=>[0,8,16,24].map(shift=>number>>>shift&255);function framed(kind,{
tick=0,ack=0,missing=0},payload=[]){const behind=tick>=ack?2*(tick-ack):2*(ack-tick)-1;const frame=[kind,...varint(tick),...varint(behind),...varint(missing),...payload];
return Uint8Array.from([...varint(frame.length),...frame])}var PART=1900;var fnv1a=state=>state.reduce((hash2,byte)=>Math.imul(hash2^byte,16777619),2166136261)>>>
0;var write={join:(have,token)=>framed(JOIN,{tick:have},new TextEncoder().encode(token)),inputs:(header,newestFirst)=>framed(INPUTS,header,newestFirst.flatMap(input=>[
...varint(input.length),...input])),hash:(tick,hash2)=>framed(HASH,{tick},u32(hash2)),ping:stamp=>framed(PING,{},stamp),pause:()=>framed(PAUSE,{}),resume:()=>framed(
CONTINUE,{}),forfeit:()=>framed(FORFEIT,{}),snapshot:(tick,state,offset)=>framed(STATE,{tick},[...varint(offset),...varint(state.length),...state.subarray(offset,
offset+PART)]),outcome:(tick,outcome)=>framed(OUTCOME,{tick},outcome)};var MatchError=class extends Error{constructor(code,text){super(text?`${code}: ${text}`:code);this.code=code}code;name="MatchError"};var SUBPROTOCOL="carillon-m\
atch.1";var SILENCE_MS=5e3;var PING_MS=1e3;var UNKNOWN_HOLD_MS=3e4;var FIRST_WAIT_MS=50;var LONGEST_WAIT_MS=2e3;var INPUTS_MAX=8;var WAITING_MAX=33;var LEAD_MAX=30;
var LATE_MAX=3;var IN_TIME_S=10;var PASSING=new Set(["idle","too-slow"]);var Match=class{#options;#state="idle";#socket;#rest=new Uint8Array;#welcome;#have=0;#last=[];#sent=0;#sentAt=0;#first=Number.
POSITIVE_INFINITY;#unacknowledged=[];#lead=0;#late=0;#inTime=0;#runs=false;#rtt;#pinged;#timer;#retry;#stamp=0;#heardAt=0;#failures=0;#lostAt=0;constructor(options){
this.#options=options}get state(){return this.#state}get welcome(){return this.#welcome}get tick(){return this.#have}get runs(){return this.#runs}get rtt(){return this.#rtt}get lead(){
return this.#lead}join(){if(this.#socket||this.#state==="over")return;this.#lostAt=performance.now();this.#connect()}disconnect(){if(this.#state==="over")return;
this.#drop();if(this.#state!=="idle")this.#become("away")}send(input){const welcome2=this.#welcome;if(this.#state!=="joined"||!welcome2||welcome2.seat>=welcome2.
seats)return void 0;if(input.length>welcome2.inputBytesMax)throw new RangeError(`an input has ${welcome2.inputBytesMax} bytes at most`);const isRelay=welcome2.mode===
"relay";const now=performance.now();if(!isRelay&&now-this.#sentAt<400/welcome2.tickRate)return void 0;const from=isRelay?this.#sent+1:Math.max(this.#sent,this.#have)+
1;const to=isRelay?from:this.#have+this.#lead;if(from>to||this.#unacknowledged.length>=WAITING_MAX)return void 0;if(from>this.#sent+1)this.#unacknowledged=[];for(let tick=from;tick<=
to;tick++)this.#unacknowledged.push({tick,input:input.slice()});this.#first=Math.min(this.#first,from);[this.#sent,this.#sentAt]=[to,now];this.#sendInputs(Math.
max(INPUTS_MAX,to-from+1));return to}hash(tick,hash2){this.#write(write.hash(tick,hash2>>>0))}pause(){this.#write(write.pause())}resume(){this.#write(write.resume())}finish(tick,outcome){
this.#write(write.outcome(tick,outcome))}leave(){this.#write(write.forfeit())}#become(state){if(state!==this.#state){this.#state=state;this.#options.onState?.(state)}}#connect(){
this.#become(this.#welcome?"away":"connecting");clearTimeout(this.#retry);const socket=new WebSocket(this.#options.url,SUBPROTOCOL);socket.binaryType="arraybuff\
er";[this.#socket,this.#rest,this.#first,this.#pinged]=[socket,new Uint8Array,Number.POSITIVE_INFINITY,void 0];this.#heardAt=performance.now();clearInterval(this.#timer);
this.#timer=setInterval(()=>this.#ping(),PING_MS);socket.addEventListener("open",()=>socket===this.#socket&&this.#write(write.join(this.#have,this.#options.token)));
socket.addEventListener("message",({data})=>socket===this.#socket&&this.#receive(new Uint8Array(data)));socket.addEventListener("close",()=>socket===this.#socket&&
this.#lost());socket.addEventListener("error",()=>{})}#drop(){clearInterval(this.#timer),clearTimeout(this.#retry);const socket=this.#socket;this.#socket=void 0;
socket?.close()}#lost(){this.#drop();const now=performance.now();if(this.#state==="joined")[this.#lostAt,this.#failures]=[now,0];this.#become(this.#welcome?"awa\
y":"connecting");const isTooLate=now-this.#lostAt>(this.#welcome?.holdMs??UNKNOWN_HOLD_MS);if(isTooLate)return this.#fail(new MatchError("unreachable","the seat\
 was not taken again in time"));const longest=Math.min(FIRST_WAIT_MS*2**this.#failures++,LONGEST_WAIT_MS);this.#retry=setTimeout(()=>this.#connect(),longest*(.5+
Math.random()/2))}#end(){this.#drop();this.#become("over")}#fail(error){this.#end();this.#options.onError?.(error)}#write(bytes){if(this.#socket?.readyState===WebSocket.
OPEN)this.#socket.send(bytes)}#sendInputs(most){const newest=this.#unacknowledged.slice(-most).reverse();if(newest[0])this.#write(write.inputs({tick:newest[0].tick,
ack:this.#have,missing:0},newest.map(({input})=>input)))}#ping(){const now=performance.now();if(this.#pinged&&this.#heardAt<this.#pinged.at){if(now-this.#pinged.
at>SILENCE_MS)this.#lost();return}if(this.#state!=="joined")return;this.#pinged={stamp:this.#stamp=this.#stamp+1>>>0,at:now};this.#write(write.ping(u32(this.#stamp)))}#pong(stamp){
const seen=stamp.reduceRight((number,byte)=>number*256+byte,0);if(seen!==this.#pinged?.stamp)return;const lastMs=performance.now()-this.#pinged.at;const{smoothedMs:mean,
variationMs:varied}=this.#rtt??{smoothedMs:lastMs,variationMs:lastMs/2};this.#rtt={lastMs,smoothedMs:mean+(lastMs-mean)/8,variationMs:varied+(Math.abs(mean-lastMs)-
varied)/4};this.#options.onRtt?.(this.#rtt)}#receive(bytes){this.#heardAt=performance.now();const socket=this.#socket;const stream=new Uint8Array(this.#rest.length+
bytes.length);stream.set(this.#rest),stream.set(bytes,this.#rest.length);this.#rest=stream;try{for(let found;socket===this.#socket&&(found=cut(this.#rest));){this.#rest=
found[1];this.#frame(read(found[0]))}}catch(error){if(!(error instanceof Malformed))throw error;this.#fail(new MatchError("bad-frame",error.message))}}#frame(frame){
const{onClock,onDesync,onEnded,onJoined,onSeat,onSnapshot,onUpdate}=this.#options;switch(frame.kind){case"welcome":return this.#joined(frame.welcome,frame.ack,onJoined);case"\
tick":return this.#closed(frame);case"update":return this.#passed(frame)?onUpdate?.(frame.update,frame.tick):void 0;case"snapshot":return this.#passed(frame)?onSnapshot?.(
frame.snapshot,frame.tick):void 0;case"wanted":return this.#wanted(frame.tick,frame.whole);case"seat":return onSeat?.(frame.seat,frame.state,frame.tick);case"de\
sync":return onDesync?.(frame);case"pong":return this.#pong(frame.stamp);case"clock":this.#runs=frame.runs;if(frame.runs)this.#sendInputs(WAITING_MAX);return onClock?.(
frame.runs,frame.seat,frame.tick);case"ended":this.#end();return onEnded?.(frame);case"error":if(!PASSING.has(frame.code))this.#fail(new MatchError(frame.code,frame.
text))}}#joined(welcome2,acknowledged,onJoined){this.#sent=Math.max(this.#sent,acknowledged);this.#lead||=welcome2.inputDelay;[this.#welcome,this.#runs,this.#failures]=
[welcome2,welcome2.runs,0];this.#become("joined");onJoined?.(welcome2);if(welcome2.mode==="relay")this.#sendInputs(WAITING_MAX);this.#ping()}#passed(frame){const{
tick}=frame;if(tick<=this.#have)return false;this.#have=tick;const isTimed=this.#welcome?.mode!=="relay";this.#unacknowledged=this.#unacknowledged.filter(one=>!acknowledges(
frame,one.tick)&&!(isTimed&&one.tick<=tick));if(isTimed&&tick>=this.#first&&tick<=this.#sent)this.#judge(acknowledges(frame,tick));return true}#wanted(tick,whole){
const state=tick===this.#have?this.#options.save?.():void 0;if(!state)return;this.#write(write.hash(tick,fnv1a(state)));for(let offset=0;whole&&offset<state.length;offset+=
PART)this.#write(write.snapshot(tick,state,offset))}#closed(frame){const{tick,given,repeated}=frame;if(!this.#passed(frame))return;const isLockstep=this.#welcome?.
mode==="lockstep";for(const[seat2,input]of frame.inputs)this.#last[seat2]=input;const counts=isLockstep?given|repeated:given;const inputs2=Array.from({length:this.#welcome?.
seats??0},(_,seat2)=>counts>>BigInt(seat2)&1n?this.#last[seat2]:void 0);this.#options.onTick?.({tick,inputs:inputs2,given,repeated})}#judge(isInTime){const{tickRate,
inputDelay}=this.#welcome;[this.#late,this.#inTime]=isInTime?[this.#late,this.#inTime+1]:[this.#late+1,0];if(this.#late<LATE_MAX&&this.#inTime<IN_TIME_S*tickRate)
return;this.#lead=isInTime?Math.max(this.#lead-1,inputDelay):Math.min(this.#lead+1,LEAD_MAX);[this.#late,this.#inTime]=[0,0]}};var HASH_EVERY=10;var HASHES_MAX=50;var Player=class{constructor(seat2,held2,told){this.held=held2;this.match=new Match({...seat2,...told,onJoined:({seed})=>this.
confirmed??=begin(seed),onTick:({tick,inputs:inputs2})=>this.#tick(tick,inputs2.map(input=>input?.[0]??0)),onDesync:()=>this.desyncs++})}held;match;confirmed;predicted;hashes=new Map;corrections=0;desyncs=0;#sent=new Map;#expected=new Map;get seat(){
return this.match.welcome?.seat??0}#tick(tick,inputs2){if(!this.confirmed||this.confirmed.tick>=TICKS)return;this.confirmed=step(this.confirmed,inputs2);this.#note(
tick);const held2=this.held(this);const sent=this.match.send(Uint8Array.of(held2));if(sent!==void 0)for(let of=sent;of>tick&&!this.#sent.has(of);of--)this.#sent.
set(of,held2);this.#predict(inputs2);if(tick===TICKS)this.match.finish(tick,new TextEncoder().encode(JSON.stringify({winner:winner(this.confirmed)??null})))}#note(tick){
const[now,own]=[hash(this.confirmed),this.confirmed.squares[this.seat]];this.hashes.set(tick,now);this.hashes.delete(tick-HASHES_MAX);if(tick%HASH_EVERY===0)this.
match.hash(tick,now);const expected=this.#expected.get(tick);if(expected&&(expected.x!==own.x||expected.y!==own.y))this.corrections++;for(const of of this.#sent.
keys())if(of<=tick)this.#sent.delete(of);for(const of of this.#expected.keys())if(of<=tick)this.#expected.delete(of)}#predict(inputs2){let game2=this.confirmed;
const last=Math.max(game2.tick,...this.#sent.keys());while(game2.tick<last){const all=inputs2.map((input,seat2)=>seat2===this.seat?this.#sent.get(game2.tick+1)??
0:input);game2=step(game2,all);this.#expected.set(game2.tick,game2.squares[this.seat])}this.predicted=game2}};function verdict(ended,seat2){if(ended.reason==="f\
inished"){const{winner:winner2}=JSON.parse(new TextDecoder().decode(ended.outcome)||"{}");if(winner2===seat2)return"You won.";return winner2===null||winner2===void 0?
"Nobody won.":"The other player won."}if(ended.reason==="forfeit")return ended.seats>>BigInt(seat2)&1n?"The other player left: you won.":"You gave up.";return{duration:"\
The time is over.","not-joined":"The other player did not come.",shutdown:"The node ended.",module:"The game failed."}[ended.reason]}var ASK_AGAIN_MS=200;async function ask(method,path,body2){const init=body2===void 0?{}:{headers:{"content-type":"application/json"},body:JSON.stringify(body2)};
const response=await fetch(`/demo/match/tickets${path}`,{method,...init});const answer=response.status===204?void 0:await response.json();if(!response.ok)throw new Error(
answer.detail??`${method} ${path}: ${response.status}`);return answer}async function seat(table,signal){for(;;){const{websocket_url:url,ticket}=await ask("POST",
"",{table});const withdraw=()=>void fetch(`/demo/match/tickets/${ticket.id}`,{method:"DELETE",keepalive:true});if(signal.aborted)withdraw();signal.throwIfAborted();
signal.addEventListener("abort",withdraw);let seen=ticket;while(seen.state==="waiting"){await new Promise(resolve=>setTimeout(resolve,ASK_AGAIN_MS));signal.throwIfAborted();
seen=await ask("GET",`/${ticket.id}`)}signal.removeEventListener("abort",withdraw);if(seen.seating)return{url,token:seen.seating.token}}}var KEYS={ArrowUp:UP,KeyW:UP,ArrowDown:DOWN,KeyS:DOWN,ArrowLeft:LEFT,KeyA:LEFT,ArrowRight:RIGHT,KeyD:RIGHT};var KEPT="carillon-demo-seats";var NEAR=6;var find=id=>document.
getElementById(id);var[lobby,waiting,game]=[find("lobby"),find("waiting"),find("game")];var[cut2,back,leave]=[find("cut"),find("back"),find("leave")];var[said,figures,
score]=[find("said"),find("figures"),find("score")];var drawing=new Drawing(find("field"));var showsConfirmed=find("confirmed");var player;var robot;var search;
var keys=0;var pointer;function show(view){for(const each of[lobby,waiting,game])each.hidden=each!==view}function say(text){if(said.textContent!==text)said.textContent=
text}function held({predicted,confirmed,seat:seat2}){const own=(predicted??confirmed)?.squares[seat2];if(keys!==0||!pointer||!own)return keys;const[dx,dy]=[pointer.
x-own.x-SIZE/2,pointer.y-own.y-SIZE/2];return(dx>NEAR?RIGHT:dx<-NEAR?LEFT:0)|(dy>NEAR?DOWN:dy<-NEAR?UP:0)}function situation({match,confirmed,seat:seat2},others){
if(match.state==="connecting")return"Taking the seat …";if(match.state==="away")return back.hidden?"The connection was lost; coming back …":"You are cut off\
. The match goes on, and your seat is held.";if([...others.values()].includes("away"))return"The other player lost the connection; the seat is held for a while.";
if(!match.runs)return"Waiting for the other player …";return confirmed?.it===seat2?"You are it: catch the other square.":"Run: the other square is it."}function refresh(one,others){
const{match,confirmed,hashes}=one;if(match.state!=="over")say(situation(one,others));const[own,other]=[confirmed?.squares[one.seat]?.score??0,confirmed?.squares[1-
one.seat]?.score??0];const seconds=ticks=>(ticks/20).toFixed(1);score.textContent=`${seconds(own)} : ${seconds(other)}, ${Math.max(0,Math.ceil((TICKS-(confirmed?.
tick??0))/20))} s left`;const values={tick:match.tick,rtt:match.rtt?`${match.rtt.smoothedMs.toFixed(1)} ± ${match.rtt.variationMs.toFixed(1)} ms`:"",lead:`${match.
lead} ticks`,corrections:one.corrections,state:one.desyncs>0?"differs from the other's":(hashes.get(match.tick)??0).toString(16).padStart(8,"0")};for(const[name,
value]of Object.entries(values))find(`figure-${name}`).textContent=`${value}`;figures.dataset["hashes"]=[...hashes].map(([tick,hash2])=>`${tick}:${hash2}`).join(
" ");figures.dataset["own"]=JSON.stringify(confirmed?.squares[one.seat]??null);figures.dataset["connection"]=match.state}function over(text){sessionStorage.removeItem(
KEPT);for(const each of[cut2,back,leave])each.hidden=true;find("again").hidden=false;say(text)}function play(own,bots){sessionStorage.setItem(KEPT,JSON.stringify(
[own,bots]));const others=new Map;const one=new Player(own,held,{onState:()=>refresh(one,others),onClock:()=>refresh(one,others),onSeat:(seat2,state)=>{others.set(
seat2,state);refresh(one,others)},onEnded:ended=>{refresh(one,others);over(verdict(ended,one.seat))},onError:error=>over(error.code==="replaced"?"Another window\
 took this seat.":`The match is over: ${error.message}.`)});player=one;robot=bots&&new Player(bots,({confirmed,seat:seat2})=>confirmed?bot(confirmed,seat2):0,{});
find("again").hidden=true;[cut2.hidden,back.hidden,leave.hidden]=[false,true,false];refresh(one,others);show(game);one.match.join();robot?.match.join();const frame=now=>{
if(player!==one)return;drawing.draw(one,now,showsConfirmed.checked);refresh(one,others);requestAnimationFrame(frame)};requestAnimationFrame(frame)}async function look(withBot){
const{signal}=search=new AbortController;say("");show(waiting);try{const table=withBot?crypto.randomUUID():"open";const[own,bots]=await Promise.all([seat(table,
signal),withBot?seat(table,signal):void 0]);signal.throwIfAborted();play(own,bots)}catch(error){show(lobby);if(!signal.aborted)say(error instanceof Error?error.
message:String(error))}}function hold(bit,isDown,event){if(!bit||event.ctrlKey||event.metaKey||event.altKey||game.hidden)return;keys=isDown?keys|bit:keys&~bit;event.
preventDefault()}addEventListener("keydown",event=>hold(KEYS[event.code],true,event));addEventListener("keyup",event=>hold(KEYS[event.code],false,event));addEventListener(
"blur",()=>[keys,pointer]=[0,void 0]);addEventListener("pagehide",()=>search?.abort());for(const kind of["pointerdown","pointermove"]){drawing.canvas.addEventListener(
kind,event=>{if(event.buttons===0)return;drawing.canvas.setPointerCapture(event.pointerId);pointer=drawing.at(event)})}for(const kind of["pointerup","pointercan\
cel"])drawing.canvas.addEventListener(kind,()=>pointer=void 0);find("play").addEventListener("click",()=>void look(false));find("play-bot").addEventListener("cl\
ick",()=>void look(true));find("stop").addEventListener("click",()=>{search?.abort();show(lobby)});cut2.addEventListener("click",()=>{[cut2.hidden,back.hidden,leave.
hidden]=[true,false,true];player?.match.disconnect()});back.addEventListener("click",()=>{[cut2.hidden,back.hidden,leave.hidden]=[false,true,false];player?.match.
join()});leave.addEventListener("click",()=>player?.match.leave());find("again").addEventListener("click",()=>{player=robot=void 0;say("");show(lobby)});var kept=JSON.
parse(sessionStorage.getItem(KEPT)??"null");if(kept)play(kept[0],kept[1]??void 0);else show(lobby);
